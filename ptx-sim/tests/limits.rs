//! Kernels that could take unlimited time or memory are stopped, with a finding that says so.

use ptx_sim::{Error, FindingKind, GlobalMemory, LaunchConfig, Module, PRINTED_BYTES, Report, launch};

const HEADER: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n";

fn run(text: &str, config: &LaunchConfig) -> Result<Report, Error> {
    let module = Module::load(&format!("{HEADER}{text}")).expect("it loads");
    launch(&module, &mut GlobalMemory::default(), "k", config, &[])
}

/// Returns a kernel that prints `format` with one number, `times` times.
fn printing(format: &str, times: u32) -> String {
    let (bytes, list): (usize, Vec<_>) =
        (format.len() + 1, format.bytes().map(|byte| byte.to_string()).collect());
    format!(
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
         .global .align 1 .b8 text[{bytes}] = {{{}, 0}};
         .visible .entry k() {{
            .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<5>;
            .local .align 8 .b8 args[8];
            mov.u32 %r1, 0;
            mov.u64 %d1, text; cvta.global.u64 %d2, %d1;
            mov.u64 %d3, args; cvta.local.u64 %d4, %d3;
         AGAIN:
            st.local.u32 [args], %r1;
            {{ .param .b64 f; .param .b64 a; .param .b32 r;
               st.param.b64 [f], %d2; st.param.b64 [a], %d4;
               call.uni (r), vprintf, (f, a); }}
            add.u32 %r1, %r1, 1;
            setp.lt.u32 %p, %r1, {times};
            @%p bra AGAIN;
            ret;
         }}",
        list.join(", ")
    )
}

#[test]
fn printed_text_is_kept_up_to_the_buffer_size() {
    let report = run(&printing("number %9d\n", 1000), &LaunchConfig::default()).expect("it starts");
    assert_eq!((report.printed.len(), report.printed_lost), (1000 * 17, 0));
    // Two clusters, each of which prints more than fits.
    let config = LaunchConfig { grid: [2, 1, 1], ..LaunchConfig::default() };
    let report = run(&printing("number %9d\n", 100_000), &config).expect("it starts");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.printed.ends_with("number     99999\n"), "the last is kept");
    assert_eq!(report.printed.len(), PRINTED_BYTES);
    assert_eq!(report.printed.len() as u64 + report.printed_lost, 2 * 100_000 * 17);
}

#[test]
fn printing_for_ever_ends() {
    let config = LaunchConfig { instruction_limit: 1 << 24, ..LaunchConfig::default() };
    let report = run(&printing("%4095d", u32::MAX), &config).expect("it starts");
    assert!(report.printed.len() <= PRINTED_BYTES && report.printed_lost > 1 << 20);
    assert!(!report.findings.is_empty());
}

#[test]
fn fields_have_the_width_of_c() {
    let report = run(&printing("%99999d", 1), &LaunchConfig::default()).expect("it starts");
    let finding = report.findings.iter().next().expect("it is found");
    assert_eq!(finding.kind, FindingKind::Execution);
    assert!(finding.message.contains("more than 4095 characters"), "{}", finding.message);
}

/// A thread that runs alone consumes as much of the limit as a whole warp.
#[test]
fn doubling_calls_end() {
    let levels = (1..=60).map(|i| format!(".func f{i}() {{ call f{0}, (); call f{0}, (); ret; }}\n", i - 1));
    let text: String = levels.collect();
    let text = format!(".func f0() {{ ret; }}\n{text}.visible .entry k() {{ call f60, (); ret; }}");
    for threads in [1, 32] {
        let config =
            LaunchConfig { block: [threads, 1, 1], instruction_limit: 1 << 20, ..LaunchConfig::default() };
        let report = run(&text, &config).expect("it starts");
        assert!(!report.findings.is_empty());
        let most = (1 << 20) / 32 + 256;
        assert!(report.warp_instructions <= most, "{} of {threads} threads", report.warp_instructions);
    }
}

#[test]
fn a_grid_has_no_more_blocks_than_can_be_waited_for() {
    let empty = ".visible .entry k() { ret; }";
    let blocks =
        |grid, block_limit| run(empty, &LaunchConfig { grid, block_limit, ..LaunchConfig::default() });
    assert!(blocks([10, 10, 10], 1000).is_ok());
    assert_eq!(blocks([10, 10, 10], 999).err(), Some(Error::Blocks { found: 1000, limit: 999 }));
    let default = LaunchConfig::default().block_limit;
    let error = blocks([i32::MAX as u32, 65535, 65535], default).expect_err("nobody waits so long");
    assert!(error.to_string().contains("hours or more; simulate a part of the grid"), "{error}");
    let error = blocks([i32::MAX as u32, 1, 1], default).expect_err("nobody waits so long");
    assert!(error.to_string().starts_with("2147483647 blocks are more than 4194304"), "{error}");
}

#[test]
fn extents_whose_product_fits_no_number_are_refused() {
    let empty = ".visible .entry k() { ret; }";
    for cluster in [[u32::MAX, u32::MAX, 2], [1 << 31, 1 << 31, 4], [u32::MAX; 3]] {
        let config = LaunchConfig { grid: [1 << 30, 4, 4], cluster, ..LaunchConfig::default() };
        let Err(Error::Shape(why)) = run(empty, &config) else { panic!("a cluster of {cluster:?} blocks") };
        assert!(why.contains("a cluster has at most 16 blocks"), "{why}");
    }
    let required = format!(".visible .entry k() .maxntid {0}, {0}, 2 {{ ret; }}", u32::MAX);
    assert!(run(&required, &LaunchConfig::default()).is_ok());
}
