// `checked` and `unchecked` are given once.
#[tma_kernel(checked, threads = 32, unchecked)]
fn both() {
}

#[tma_kernel(checked, threads = 32, checked)]
fn twice() {
}
