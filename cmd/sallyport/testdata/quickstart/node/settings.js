try {
  require('fs').writeFileSync('.vscode/settings.json', '{ "editor.tabSize": 2 }\n')
} catch (e) {
  console.error(e.message)
  process.exit(1)
}
