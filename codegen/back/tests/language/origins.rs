//! Statements know their source locations.

use tma_codegen::ir::{Callee, Kernel, Stmt, StmtKind, visit};

/// Returns the only kernel of a module with these items, whose body is `body`.
#[track_caller]
fn kernel(items: &str, body: &str) -> Kernel {
    let source = format!(
        "#[tma_module]\nmod m {{\ntype A = Tile<f32, Shape2<8, 8>>;\n{items}\n\
         #[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<f32>) {{\n{body}\n}}\n}}"
    );
    match tma_codegen::check("origins.rs", &source) {
        Ok(accepted) => accepted.kernels[0].kernel.kernel().clone(),
        Err(failure) => panic!("refused:\n{failure}"),
    }
}

fn statements(kernel: &Kernel) -> Vec<&Stmt> {
    let mut all = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| all.push(stmt));
    all
}

/// Returns the calls around a statement, innermost first, each with its line.
fn calls(kernel: &Kernel, stmt: &Stmt) -> Vec<String> {
    let call = |call: &tma_codegen::ir::Call| {
        let line = call.span.start().line;
        match &call.callee {
            Callee::Device(name) => format!("{name} in line {line}"),
            Callee::Pipeline { pipeline, method } => {
                format!("{method} of {} in line {line}", kernel.pipeline(*pipeline).name)
            }
            Callee::Trusted { reason } => format!("trusted in line {line}: {reason}"),
        }
    };
    kernel.calls_around(stmt.origin).map(call).collect()
}

const RING: &str = "let ring = shared::<Pipeline<(A,), 2>>();\nlet mut c = ring.consumer();\n";

#[test]
fn statements_are_numbered_from_outside_in() {
    let kernel = kernel(
        "",
        &format!(
            "{RING} for i in 0..n {{ let slot = c.wait(); if i > 2 {{ out.set(i, slot.0.get([0, 0])); }} \
             slot.release(); }} sync_threads();"
        ),
    );
    let ids: Vec<_> = statements(&kernel).iter().map(|stmt| stmt.id.0).collect();
    // One of them is the fence that the release begins with.
    assert!(statements(&kernel).iter().any(|stmt| matches!(stmt.kind, StmtKind::Fence(_))));
    assert_eq!(ids, (0..ids.len() as u32).collect::<Vec<_>>());
}

#[test]
fn a_statement_names_the_calls_it_was_taken_from() {
    let kernel = kernel(
        "#[tma_device] fn outer(c: &mut Consumer<(A,), 2>) -> f32 {\ninner(c.wait())\n}\n\
         #[tma_device] fn inner(slot: FullSlot<(A,)>) -> f32 {\nlet x = slot.0.get([0, 0]);\nslot.release();\nx\n}",
        &format!("{RING}out.set(0, outer(&mut c));"),
    );
    let of = |wanted: fn(&StmtKind) -> bool| {
        let all = statements(&kernel);
        let stmt = all.iter().find(|stmt| wanted(&stmt.kind)).expect("there is such a statement");
        (stmt.origin.span.start().line, calls(&kernel, stmt))
    };
    assert_eq!(
        of(|kind| matches!(kind, StmtKind::TileGet { .. })),
        (8, vec!["inner in line 5".to_owned(), "outer in line 16".to_owned()])
    );
    let release = ["release of ring in line 9", "inner in line 5", "outer in line 16"].map(str::to_owned);
    assert_eq!(of(|kind| matches!(kind, StmtKind::Fence(_))), (9, release.to_vec()));
    let wait = |kind: &StmtKind| {
        matches!(kind, StmtKind::Barrier { op: tma_codegen::ir::BarrierOp::Wait { .. }, .. })
    };
    assert_eq!(of(wait), (5, vec!["wait of ring in line 5".to_owned(), "outer in line 16".to_owned()]));
    assert_eq!(of(|kind| matches!(kind, StmtKind::GlobalSet { .. })), (16, vec![]));
}

#[test]
fn a_pipeline_keeps_its_name_and_parts() {
    let kernel = kernel("", &format!("{RING} let slot = c.wait(); slot.release();"));
    let pipeline = &kernel.pipelines[0];
    assert_eq!((pipeline.name.as_str(), pipeline.stages), ("ring", 2));
    let names: Vec<_> = pipeline.parts().map(|id| kernel.shared_var(id).name.as_str()).collect();
    assert_eq!(names, ["ring.0", "ring.full", "ring.empty"]);
    let all = statements(&kernel);
    let methods: Vec<_> = all
        .iter()
        .filter_map(|stmt| Some((stmt, kernel.pipeline_call(stmt.origin)?.1)))
        .filter(|(stmt, _)| matches!(stmt.kind, StmtKind::Barrier { .. }))
        .map(|(_, method)| method)
        .collect();
    assert_eq!(methods, ["wait", "release"]);
}
