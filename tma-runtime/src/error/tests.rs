//! Tests of every error: its code, its message and its page.

use super::*;
use std::time::Duration;
use tma_model::mma::OperandFault;
use tma_model::tensor_map::{Fill, MapFault, Mode};
use tma_model::{DataType, Interleave, Swizzle};

/// Makes one error of each code, with driver statuses as the driver would return them.
fn every_error() -> Vec<Error> {
    let kernel = "copy";
    let tensor = "src";
    let status = |code: i32, name: &str| DriverStatus {
        code,
        name: name.to_owned(),
        // The driver has no description of a status without a name.
        description: if name.is_empty() { String::new() } else { "as the driver puts it".to_owned() },
    };
    let map = TensorMap {
        element: DataType::F32,
        address: 0x1000,
        extents: vec![64, 32],
        byte_strides: vec![256],
        mode: Mode::Tiled { box_extents: vec![32, 8] },
        element_strides: vec![1, 1],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
    };
    vec![
        MapError::MisalignedAddress { tensor, address: 0x1008, unit: 16 }.into(),
        MapError::ExtentOutOfRange { tensor, dimension: 0, rank: 2, extent: 0 }.into(),
        MapError::MisalignedStride { tensor, dimension: 0, rank: 2, bytes: 136, unit: 16 }.into(),
        MapError::StrideTooLarge { tensor, dimension: 0, rank: 4, bytes: 1 << 40 }.into(),
        MapError::InnerStride { tensor, stride: 2 }.into(),
        Error::RankMismatch { tensor, found: 3, wanted: 2 },
        MapError::BoxExtent { tensor, dimension: 0, rank: 2, extent: 257, most: 256 }.into(),
        MapError::BoxRowBytes { tensor, bytes: 24 }.into(),
        MapError::BoxRowExceedsSwizzle { tensor, bytes: 144, span: 128 }.into(),
        Error::ElementMismatch { tensor, found: Scalar::F32, wanted: Scalar::F16 },
        Error::NotContiguous { tensor },
        Error::HostLength { found: 5, wanted: 6 },
        Error::ShapeMismatch { found: vec![2, 3], wanted: vec![3, 2] },
        Error::OtherDevice { what: tensor, found: DeviceId::Cuda(1), wanted: DeviceId::Cuda(0) },
        Error::TensorTooLarge { shape: vec![usize::MAX], element: Scalar::F64 },
        Error::ArgumentCount { kernel, found: 1, wanted: 2 },
        Error::ArgumentMismatch {
            kernel,
            parameter: tensor,
            found: ArgumentKind::Global { element: Scalar::F32 },
            wanted: ArgumentKind::Im2colMap { element: Scalar::F16 },
        },
        Error::MapRefused { tensor, status: status(1, "CUDA_ERROR_INVALID_VALUE"), map: Box::new(map) },
        MapError::StoreRowBytes { tensor, bytes: 148 }.into(),
        MapError::ElementStride { tensor, dimension: 0, rank: 2, stride: 9, inner: false }.into(),
        MapError::StridedBox {
            tensor,
            dimension: 0,
            rank: 2,
            tile: 128,
            stride: 4,
            extent: 509,
            most: 64,
            pixels: false,
        }
        .into(),
        MapError::NanFill { tensor, element: Scalar::U32 }.into(),
        MapError::InterleavedBox { tensor, extents: &[1, 2, 64], pixel: 8, unit: 8 }.into(),
        MapError::PartialPixel { tensor, extent: 60, pixel: 8 }.into(),
        MapError::BoxBytes { tensor, bytes: 1 << 20, most: 228 << 10 }.into(),
        MapError::Overlap { tensor, first: vec![1, 0], second: vec![0, 8] }.into(),
        Error::NotMutable { kernel, tensor },
        MapError::Internal { tensor, fault: MapFault::RowBytes { bytes: 24 } }.into(),
        Error::MisalignedGlobal { tensor, address: 0x1004, alignment: 16 },
        MapError::Corner { tensor, dimension: 1, corner: 128, least: -128, most: 127 }.into(),
        MapError::BoundingBox { tensor, dimension: 1, first: 0, last: -1 }.into(),
        MapError::StoreCorner { tensor, dimension: 1, lower: -1, upper: 0 }.into(),
        TeamError::Unlike { tensor, rank: 1 }.into(),
        ViewError::Slice { dimension: 0, rank: 2, start: 0, end: 9, extent: 8 }.into(),
        ViewError::Permutation { order: vec![0, 2] }.into(),
        ViewError::Reach { shape: vec![3, 8], strides: vec![8, 1], reached: 24, available: 16 }.into(),
        ViewError::Overlap { shape: vec![2, 8], strides: vec![4, 1], dimension: 0, reached: 8 }.into(),
        ViewError::UnknownMemory.into(),
        Error::Assertion {
            kernel,
            place: "src/main.rs:12:20".to_owned(),
            message: "attempt to divide by zero".to_owned(),
            block: [3, 0, 0],
            thread: [17, 0, 0],
        },
        PictureError::Accumulator { element: Scalar::Bf16, extents: [60, 16] }.into(),
        PictureError::Fragment { element: Scalar::Bf16, extents: [64, 8] }.into(),
        PictureError::Metadata { element: Scalar::Bf16, extents: [64, 16] }.into(),
        PictureError::Operand {
            tile: "Tile<f32, Shape2<64, 32>, Swizzle128>".to_owned(),
            transposed: false,
            fault: None,
        }
        .into(),
        PictureError::Operand {
            tile: "Tile<e4m3, Shape2<64, 128>, Swizzle128>".to_owned(),
            transposed: true,
            fault: Some(OperandFault::Transposed),
        }
        .into(),
        TuneError::NoCandidates { task: "gemm".to_owned() }.into(),
        TuneError::SameName { task: "gemm".to_owned(), name: "gemm::wide".to_owned() }.into(),
        TuneError::NoneRuns { task: "gemm".to_owned(), why: "TMA0612: too much".to_owned() }.into(),
        Error::PtxNotKept {
            package: "hello".into(),
            kernels: vec!["copy".to_owned(), "scale::wide".to_owned()],
        },
        ForeignError::Context { what: "the stream", device: DeviceId::Cuda(0) }.into(),
        ForeignError::Memory { address: 0x1000, device: DeviceId::Context(0) }.into(),
        ForeignError::Misaligned { address: 0x1002, element: Scalar::F32 }.into(),
        ForeignError::Simulated { device: DeviceId::Simulator(0) }.into(),
        ForeignError::NotPrimary { device: DeviceId::Context(0) }.into(),
        ForeignError::Shared { device: DeviceId::Cuda(0) }.into(),
        ForeignError::Borrowed { device: DeviceId::Cuda(0) }.into(),
        Error::NoDriver { status: status(34, "CUDA_ERROR_STUB_LIBRARY") },
        Error::NoDevice { ordinal: 1, count: 1 },
        Error::NoBackend,
        Error::Architecture {
            kernel,
            target: "sm_90a".to_owned(),
            device: "a later GPU".to_owned(),
            capability: (10, 0),
        },
        Error::NoPtx { kernel },
        Error::Jit {
            kernel,
            status: status(218, "CUDA_ERROR_INVALID_PTX"),
            log: "line 7: unexpected".to_owned(),
        },
        Error::Launch { kernel, status: status(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES") },
        Error::KernelFault {
            kernels: vec!["copy", "scale"],
            status: status(715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
        },
        Error::OutOfMemory { bytes: 1 << 40, device: DeviceId::Cuda(0) },
        Error::GridZero { kernel, axis: 'x' },
        Error::GridTooLarge { kernel, axis: 'y', found: 65_536, limit: 65_535 },
        Error::SharedMemory { kernel, bytes: 300_000, limit: 232_448 },
        Error::MissingEntryPoint { name: "cuTensorMapEncodeTiled" },
        Error::NoEntry { kernel, entry: "copy" },
        Error::Driver { operation: "create a stream", status: status(999, "") },
        Error::Findings { kernel, seed: 3, count: 1, text: "a read before the wait".to_owned() },
        Error::SimulatedLaunch { kernel, why: "line 7: `wgmma` is not supported".to_owned() },
        Error::SimulatedMemory { address: 0x1000 },
        Error::UnknownDevice { name: "gpu".to_owned() },
        Error::OtherParameters { kernel, found: vec![Some(128), Some(8), None], wanted: vec![Some(128)] },
        Error::Cluster { kernel, why: ClusterError::Grid { axis: 'x', found: 5, cluster: 2 } },
        Error::Cluster { kernel, why: ClusterError::Size { found: [4, 4, 1], most: 8 } },
        Error::Cluster { kernel, why: ClusterError::Missing },
        Error::Cluster { kernel, why: ClusterError::Given { fixed: Some([2, 1, 1]) } },
        Error::GridNotResident { kernel, found: 133, limit: 132 },
        Error::NeverWaits { kernel },
        Error::Unowned { kernel, tensor },
        Error::PreparedOptions,
        Error::HostMemory { bytes: 1 << 40 },
        Error::SimulatedGrid { kernel, found: 1 << 31, limit: 1 << 22, least_time: "2 hours".to_owned() },
        Error::Trace { kernel, why: TraceError::Capture },
        Error::Trace { kernel, why: TraceError::Limited },
        Error::Trace { kernel, why: TraceError::Ptx("the PTX has no kernel `copy`".to_owned()) },
        Error::Trace { kernel, why: TraceError::File { file: "a.json".into(), why: "disk full".to_owned() } },
        Error::Deadlock {
            kernel,
            limit: Duration::from_secs(2),
            report: DeadlockReport {
                waiting: vec![
                    "warp 4 of block 0 waits for the phase with parity 1 of the mbarrier `full`\n  from \
                     src/lib.rs:38: full.wait(1);"
                        .to_owned(),
                ],
                warps: 1,
                replay: "TMA_DEVICE=sim target/debug/copies --rows 20".to_owned(),
            },
        },
        Error::Unwatched {
            kernel,
            why: "the PTX has no kernel `copy`; compile it with this project's build script".to_owned(),
        },
        TeamError::Size { found: 9 }.into(),
        TeamError::NoPeerAccess { from: DeviceId::Cuda(0), to: DeviceId::Cuda(2), status: None }.into(),
        TeamError::NoPeerAccess {
            from: DeviceId::Cuda(2),
            to: DeviceId::Cuda(0),
            status: Some(status(711, "CUDA_ERROR_TOO_MANY_PEERS")),
        }
        .into(),
        TeamError::NoRank { rank: 2, ranks: 2 }.into(),
        TeamError::Count { what: "lists of arguments", found: 3, ranks: 2 }.into(),
        TeamError::Tensors { kernel, tensor, found: 1, ranks: 2 }.into(),
        Error::Ranks {
            ranks: 4,
            failed: vec![(1, Error::NotMutable { kernel, tensor }), (3, Error::NeverWaits { kernel })],
        },
        Error::NoSimulator,
    ]
}

#[test]
fn messages_begin_with_their_code() {
    let errors = every_error();
    let codes: Vec<&str> = errors.iter().map(Error::code).collect();
    for (error, code) in errors.iter().zip(&codes) {
        assert!(error.to_string().starts_with(&format!("{code}: ")), "{error}");
    }
    #[rustfmt::skip]
    let wanted = [
        "TMA0501", "TMA0502", "TMA0503", "TMA0504", "TMA0505", "TMA0506",
        "TMA0507", "TMA0508", "TMA0509", "TMA0510", "TMA0511", "TMA0512",
        "TMA0513", "TMA0514", "TMA0515", "TMA0516", "TMA0516", "TMA0517", "TMA0518", "TMA0519", "TMA0520", "TMA0521",
        "TMA0522", "TMA0523", "TMA0524", "TMA0525", "TMA0526", "TMA0529", "TMA0531", "TMA0532", "TMA0533", "TMA0534",
        "TMA0535", "TMA0540", "TMA0541", "TMA0542", "TMA0543", "TMA0544", "TMA0545",
        "TMA0548", "TMA0548", "TMA0548", "TMA0549", "TMA0549",
        "TMA0554", "TMA0555", "TMA0556", "TMA0560",
        "TMA0564", "TMA0564", "TMA0564", "TMA0564", "TMA0564", "TMA0564", "TMA0564",
        "TMA0601", "TMA0602", "TMA0603", "TMA0604", "TMA0605", "TMA0606",
        "TMA0607", "TMA0608", "TMA0609", "TMA0610", "TMA0611", "TMA0612",
        "TMA0613", "TMA0614", "TMA0615", "TMA0616", "TMA0617", "TMA0618", "TMA0619", "TMA0620",
        "TMA0621", "TMA0622", "TMA0623", "TMA0624", "TMA0625", "TMA0626", "TMA0627", "TMA0628",
        "TMA0629", "TMA0630", "TMA0631", "TMA0631", "TMA0631", "TMA0631", "TMA0632", "TMA0633",
        "TMA0634", "TMA0635", "TMA0635", "TMA0636", "TMA0636", "TMA0636", "TMA0637", "TMA0906",
    ];
    assert_eq!(codes, wanted);
}

#[test]
fn every_code_has_a_page() {
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors");
    for code in every_error().iter().map(Error::code) {
        let page = std::fs::read_to_string(format!("{pages}/{code}.md")).unwrap_or_default();
        assert!(page.starts_with(&format!("# {code}: ")), "docs/errors/{code}.md has no title with the code");
    }
}

/// Returns the whole message of the error with this code.
fn message(code: &str) -> String {
    every_error().iter().filter(|error| error.code() == code).map(Error::to_string).collect()
}

#[test]
fn tma0501_the_message_names_found_and_expected_types() {
    assert_eq!(
        message("TMA0501"),
        "TMA0501: a tensor map must start at a multiple of 16 bytes: `src` is at 0x1008 (8 bytes past one); \
         start the view at an element whose address is a multiple of 16"
    );
}

#[test]
fn tma0604_the_simulator_is_offered_where_it_runs_the_kernel() {
    assert!(message("TMA0604").ends_with(", or set `TMA_DEVICE=sim` to run it on the simulator"));
    let (kernel, target, device) = ("copy", "sm_100a".to_owned(), "ptx-sim".to_owned());
    let other = Error::Architecture { kernel, target, device, capability: (9, 0) }.to_string();
    assert!(other.ends_with("set a target of that device in the build script"), "{other}");
}

#[test]
fn tma0606_the_log_of_the_compiler_is_in_the_message() {
    assert!(
        message("TMA0606")
            .ends_with("CUDA_ERROR_INVALID_PTX (218: as the driver puts it)\nline 7: unexpected")
    );
}

#[test]
fn tma0608_a_fault_names_the_kernels_and_the_usual_cause() {
    let message = message("TMA0608");
    assert!(message.contains("copy, scale") && message.contains("at a negative coordinate"), "{message}");
}

#[test]
fn tma0616_one_mistake_is_one() {
    assert!(message("TMA0616").contains("found 1 mistake in `copy`, with seed 3"));
}

#[test]
fn tma0621_to_tma0624_contain_advice() {
    for (code, wanted) in [
        ("TMA0621", "5 blocks along x are not a multiple of the cluster's 2; launch 6"),
        ("TMA0622", "1 to 8 blocks: this one has 4 × 4 × 1"),
        ("TMA0623", "device.with().cluster([2, 1, 1])"),
        ("TMA0624", "fixes the clusters to 2 × 1 × 1 blocks; launch without"),
    ] {
        let message = message(code);
        assert!(message.contains("`copy`") && message.contains(wanted), "{message}");
    }
}

#[test]
fn tma0625_to_tma0627_contain_advice() {
    for (code, wanted) in [
        ("TMA0625", "launched with 133, but this device runs 132 at once; launch at most"),
        ("TMA0626", "never does; call it before the kernel touches"),
        ("TMA0627", "`src` of `copy` is a view from an address"),
    ] {
        let message = message(code);
        assert!(message.contains("`copy`") && message.contains(wanted), "{message}");
    }
}

#[test]
fn tma0628_options_belong_to_the_recorded_launches() {
    let message = message("TMA0628");
    assert!(message.contains("to the launches in `Device::prepare`"), "{message}");
}

#[test]
fn tma0601_tma0615_statuses_without_a_name_are_numbers() {
    assert!(message("TMA0601").contains("CUDA_ERROR_STUB_LIBRARY (34: "));
    assert!(message("TMA0601").contains("`libcuda.so.1`"));
    assert!(message("TMA0615").ends_with("failed to create a stream: CUDA error 999"));
}

/// Every message in full. To change a message, change `messages.txt` as well.
#[test]
fn messages_are_as_they_were() {
    let messages: Vec<String> = every_error().iter().map(Error::to_string).collect();
    let (found, wanted) = (messages.join("\n\n") + "\n", include_str!("messages.txt"));
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
}
