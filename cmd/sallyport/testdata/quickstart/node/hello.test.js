require('node:test')('hello', () => {})
