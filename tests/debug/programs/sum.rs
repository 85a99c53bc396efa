struct Point { x: i32, y: i32 }
fn add(a: i32, b: i32) -> i32 {
    let c = a + b;
    c
}
fn main() {
    let p = Point { x: 1, y: 2 };
    let s = add(p.x, p.y);
    println!("sum {}", s);
    std::process::exit(3);
}
