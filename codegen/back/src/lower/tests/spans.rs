//! Marks of spans.

use super::ptx;

/// A kernel whose block has `span` around a wait, a load and a store.
fn kernel(span: &str) -> String {
    format!(
        "#[tma_kernel(threads = 128)] pub fn k(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {{\n\
         let tile: Tile<f32, Shape2<8, 32>> = shared();\n\
         let full: Barrier = shared();\n\
         if thread_idx().x == 0 {{ full.init(1); fence_barrier_init(); }}\n\
         sync_threads();\n\
         if thread_idx().x == 0 {{ full.arrive_expect_tx(tile.bytes()); src.load(tile, [0, 0], full); }}\n\
         if thread_idx().x < 32 {{ {span}\n\
         full.wait(0);\n\
         out.set(thread_idx().x, 2.0 * tile.get([1, thread_idx().x])); }} \n\
         sync_threads(); }}"
    )
}

#[test]
fn marks_are_comments_in_their_places() {
    let text = ptx(&kernel("trace_span!(\"$1 {a}\");"));
    let at = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("no `{wanted}` in\n{text}"));
    let places = [
        at("cp.async.bulk.tensor.2d"),
        at("\t// span begin $1 {a}\n"),
        at("mbarrier.try_wait"),
        at("st.global"),
        at("\t// span end $1 {a}\n"),
    ];
    assert!(places.is_sorted(), "{text}");
    assert_eq!(text.matches("// span ").count(), 2, "{text}");
}

#[test]
fn spans_cost_no_instruction() {
    let code = |text: String| -> Vec<String> {
        let is_code = |line: &&str| !line.trim().starts_with("//") && !line.trim().starts_with(".loc");
        text.lines().filter(is_code).map(str::to_owned).collect()
    };
    assert_eq!(code(ptx(&kernel("trace_span!(\"a\");"))), code(ptx(&kernel(""))));
}
