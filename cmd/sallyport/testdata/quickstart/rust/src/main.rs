fn main() { println!("hello") }
