//! Pages that `ncu` 2025.3 printed of kernels on an H200, shortened to some columns and
//! instructions.

use super::*;

const GEMM: [&str; 2] = [include_str!("recorded/gemm-raw.csv"), include_str!("recorded/gemm-source.csv")];
const COPY: [&str; 2] = [
    include_str!("recorded/tma_copy_pipelined-raw.csv"),
    include_str!("recorded/tma_copy_pipelined-source.csv"),
];

fn launch_of([raw, _]: [&str; 2]) -> LaunchMetrics {
    LaunchMetrics::read(raw, |_| true).unwrap()
}

fn lines_of([_, page]: [&str; 2]) -> Vec<LineMetrics> {
    lines::read(page, |_| true)
}

/// Returns the reasons of a line in words, with their samples.
fn reasons(line: &LineMetrics) -> Vec<(&str, u64)> {
    line.reasons().into_iter().map(|(stall, samples)| (stall.words(), samples)).collect()
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_head_says_how_long_and_what_is_used_up() {
    let wanted = "\
plain::bf16_t128x256_cluster2x1_nt on NVIDIA H200: 173.6 µs, 128 blocks of 384 threads
  tensor cores   91.0 % of the peak
  global memory  18.4 % of the peak: 126.2 MB read, 27.1 MB written
  L2 cache       44.6 % of the peak: 1.6 GB read, 33.6 MB written
  occupancy      14.0 % of the warps of a multiprocessor, 18.8 % possible: registers and shared memory limit it to 1 block
  instructions   25979092
  copy engine    65536 loads, 4096 stores
";
    assert_eq!(plain(&launch_of(GEMM).text()), wanted);
    let json = launch_of(GEMM).json();
    assert_eq!(
        (&json["kernel"], &json["limited_by"][1]),
        (&"plain::bf16_t128x256_cluster2x1_nt".into(), &"shared memory".into())
    );
    assert_eq!(json["seconds"].as_f64().map(|seconds| (seconds * 1e9).round()), Some(173_632.0));
    assert_eq!(json["shared_bytes_per_block"].as_f64().map(f64::round), Some(229_440.0));
}

#[test]
fn a_version_without_some_metrics_is_read() {
    let page = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"new\"\n\"\",\"\",\"ms\",\"\"\n\"0\",\"k\",\"1,500.5\",\"7\"\n";
    let launch = LaunchMetrics::read(page, |_| true).unwrap();
    assert_eq!(plain(&launch.text()), "k: 1500.50 ms\n");
    assert!(launch.json()["instructions"].is_null());
    assert!(LaunchMetrics::read(page, |entry| entry == "other").is_none());
    assert!(LaunchMetrics::read("==ERROR== broken\n", |_| true).is_none());
}

#[test]
fn lines_have_their_waits_in_words() {
    let lines = lines_of(COPY);
    let top = lines.iter().max_by_key(|line| line.samples()).unwrap();
    assert_eq!(top.place(), "src/bin/tma_copy_pipelined.rs:55");
    assert_eq!(reasons(top)[0], ("the phase of an mbarrier", 112));
    let line = |number| lines.iter().find(|line| line.line == number).unwrap();
    assert_eq!(reasons(line(47))[..2], [("a memory fence", 72), ("global memory", 32)]);
    assert_eq!(line(47).json()["stalls"][0]["ncu"], "membar");

    let gemm = lines_of(GEMM);
    let [consumer, producer] = [15, 17].map(|number| gemm.iter().find(|line| line.line == number).unwrap());
    assert_eq!(reasons(consumer)[0].0, "multiplications");
    assert_eq!(reasons(producer)[0].0, "the phase of an mbarrier");
    assert_eq!(consumer.conflicts, Some(0));
}

#[test]
fn instructions_without_samples_count() {
    let page = "\"File Path\",\"src/lib.rs\"\n\"Function Name\",\"k\"\n\
        \"Line No\",\"Source\",\"Address\",\"Source\",\"# Samples\",\"Instructions Executed\",\
        \"L1 Wavefronts Shared Excessive\",\"L2 Theoretical Sectors Global\",\"stall_later\",\"stall_wait (Not Issued)\"\n\
        \"7\",\"let x = 1;\",\"-\",\"-\",\"9\",\"90\",\"5\",\"4\",\"2\",\"9\"\n\
        \"\",\"\",\"0x10\",\"      LDS R1, [R2]\",\"2\",\"4\",\"5\",\"4\",\"2\",\"9\"\n\
        \"\",\"\",\"...\",\"...\",\"-\",\"-\",\"-\",\"-\",\"-\",\"-\"\n\
        \"\",\"\",\"0x30\",\"      NOP\",\"0\",\"1,000\",\"0\",\"0\",\"0\",\"0\"\n";
    // A second part of the same file is of another launch.
    let lines = lines::read(&format!("{page}{page}"), |entry| entry == "k");
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (lines[0].instructions, lines[0].conflicts, lines[0].global_bytes),
        (1004, Some(5), Some(128))
    );
    assert_eq!((lines[0].samples(), reasons(&lines[0])), (2, vec![("later", 2)]));
    let text = plain(&of_lines(&lines));
    assert!(
        text.contains(" 100.0%          1004               5          128 B  src/lib.rs:7: let x = 1;\n"),
        "{text}"
    );
    assert!(text.contains("waits for: later 100.0%\n"), "{text}");
    assert!(lines::read(page, |entry| entry == "other").is_empty());
    assert_eq!(of_lines(&[]), "no instruction has a line of the source\n");
}
