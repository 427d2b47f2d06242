// What is no Rust.
fn k( {
