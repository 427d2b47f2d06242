// Columns count characters, and not bytes.
#[tma_kernel(threads = 32)]
fn k() {
    assert!(true, "größer"); nope();
}
