//! Tests of launches on simulated teams, with PTX written by hand: an all-reduce by flags.

use super::*;
use crate::launch::{GlobalSlice, GlobalSliceMut, KernelParts, ParamKind, ParamSpec};
use crate::spec::{Cluster, Scalar};
use crate::tensor::symmetric::SymmetricTensor;
use std::ops::Range;
use tma_model::limits::TEAM_RANKS;

/// The seeds of each test.
const SEEDS: Range<u64> = 0..8;
/// Elements of each rank, and threads of the block.
const LEN: usize = 64;

const fn global(name: &'static str, element: Scalar, written: bool) -> ParamSpec {
    ParamSpec { name, kind: ParamKind::Global { element, written, alignment: element.bytes() } }
}

/// Each rank doubles its data, signals its peers, waits for all of them, and adds up the data of all.
const PTX: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry sum(
    .param .u64 data, .param .u64 data_len, .param .u64 flag, .param .u64 flag_len, .param .u64 out, .param .u64 out_len,
    .param .u64 peers, .param .u64 peers_len, .param .u64 flags, .param .u64 flags_len, .param .u32 ranks
) .reqntid 64, 1, 1 {
    .reg .pred %p<3>; .reg .b32 %value, %peer, %sum, %t, %ranks; .reg .b64 %data, %flag, %out, %peers, %flags, %at, %offset;
    ld.param.b64 %data, [data]; ld.param.b64 %flag, [flag]; ld.param.b64 %out, [out];
    ld.param.b64 %peers, [peers]; ld.param.b64 %flags, [flags]; ld.param.b32 %ranks, [ranks];
    mov.u32 %t, %tid.x; mul.wide.u32 %offset, %t, 4; add.u64 %data, %data, %offset; add.u64 %out, %out, %offset;
    ld.global.b32 %value, [%data]; add.u32 %value, %value, %value; st.global.b32 [%data], %value;
    bar.sync 0;
    setp.ge.u32 %p1, %t, %ranks;
    @%p1 bra SIGNALLED;
    mad.wide.u32 %at, %t, 8, %flags; ld.global.b64 %at, [%at];
    red.release.sys.global.add.u32 [%at], 1;
SIGNALLED:
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra ARRIVED;
WAIT:
    ld.acquire.sys.global.b32 %value, [%flag]; setp.lt.u32 %p1, %value, %ranks;
    @%p1 bra WAIT;
ARRIVED:
    bar.sync 0;
    mov.u32 %sum, 0; mov.u32 %peer, 0;
SUM:
    mad.wide.u32 %at, %peer, 8, %peers; ld.global.b64 %at, [%at]; add.u64 %at, %at, %offset;
    ld.global.b32 %value, [%at]; add.u32 %sum, %sum, %value;
    add.u32 %peer, %peer, 1; setp.lt.u32 %p2, %peer, %ranks;
    @%p2 bra SUM;
    st.global.b32 [%out], %sum;
    ret;
}";

const PARTS: KernelParts = KernelParts {
    name: "sum",
    entry: "sum",
    ptx: PTX,
    threads: [LEN as u32, 1, 1],
    params: &[
        global("data", Scalar::U32, true),
        global("flag", Scalar::U32, true),
        global("out", Scalar::U32, true),
        global("peers", Scalar::U64, false),
        global("flags", Scalar::U64, false),
        ParamSpec { name: "ranks", kind: ParamKind::Scalar { bytes: 4 } },
    ],
    ..KernelParts::NOTHING
};

// SAFETY: each test passes `LEN` elements, and the addresses of the data and the flags of all ranks,
// which are borrowed mutably.
static SUM: KernelSpec = unsafe { KernelSpec::from_parts(PARTS) };

/// The tensors of a team.
struct Tensors {
    data: SymmetricTensor<u32, 1>,
    flag: SymmetricTensor<u32, 1>,
    out: SymmetricTensor<u32, 1>,
    /// The addresses of the data and the flags of all ranks, on each rank.
    peers: SymmetricTensor<u64, 1>,
    flags: SymmetricTensor<u64, 1>,
}

fn addresses<T: crate::Scalar>(of: &SymmetricTensor<T, 1>) -> Result<SymmetricTensor<u64, 1>, Error> {
    let all: Vec<u64> = of.tensors().iter().map(crate::tensor::DeviceTensor::as_ptr).collect();
    of.team().tensors(&vec![&all; all.len()], [all.len()])
}

/// The value of an element before the launch.
fn value(rank: usize, element: usize) -> u32 {
    (rank * 1000 + element) as u32
}

impl Tensors {
    fn new(team: &Team) -> Result<Self, Error> {
        let of_rank = |rank| (0..LEN).map(|element| value(rank, element)).collect::<Vec<_>>();
        let data = team.tensors(&(0..team.ranks()).map(of_rank).collect::<Vec<_>>(), [LEN])?;
        let flag = team.zeros([1])?;
        let (peers, flags) = (addresses(&data)?, addresses(&flag)?);
        Ok(Self { data, flag, out: team.filled_bytes([LEN], 0xff)?, peers, flags })
    }

    /// Returns the arguments of each rank.
    fn args(&mut self) -> Vec<Vec<Arg<'_>>> {
        let ranks = self.data.tensors().len() as u32;
        let [data, flag, out] =
            [&mut self.data, &mut self.flag, &mut self.out].map(SymmetricTensor::views_mut);
        let (peers, flags) = (self.peers.views(), self.flags.views());
        let of_rank = |((((data, flag), out), peers), flags)| {
            let written = [data, flag, out].map(|view| Arg::global_mut(GlobalSliceMut::new(view)));
            let read = [peers, flags].map(|view| Arg::global(GlobalSlice::new(view)));
            written.into_iter().chain(read).chain([Arg::scalar(ranks)]).collect()
        };
        data.zip(flag).zip(out).zip(peers).zip(flags).map(of_rank).collect()
    }

    fn launch(&mut self, team: &Team) -> Result<(), Error> {
        launch_team(team, &SUM, Grid::x(1), &self.args())
    }
}

/// Launches the kernel on a team, and checks the results of all ranks.
fn check(team: &Team) -> Result<(), Error> {
    let mut tensors = Tensors::new(team)?;
    tensors.launch(team)?;
    let sum = |element| (0..team.ranks()).map(|rank| 2 * value(rank, element)).sum();
    let wanted: Vec<u32> = (0..LEN).map(sum).collect();
    assert_eq!(tensors.out.to_vecs()?, vec![wanted; team.ranks()], "{team:?}");
    Ok(())
}

#[test]
fn all_ranks_add_up_the_data_of_all() -> Result<(), Error> {
    for ranks in 1..=4 {
        for seed in SEEDS {
            check(&Team::simulator(ranks)?.seed(seed))?;
        }
    }
    Ok(())
}

/// Runs on the GPUs of the machine, each with a rank and the first one with two. Without GPUs there
/// is no such team.
#[test]
fn ranks_run_on_gpus_of_their_own_or_share_one() -> Result<(), Error> {
    let gpus = Device::all_cuda()?.len() as u32;
    if gpus == 0 {
        assert!(Team::cuda(&[0, 0]).is_err_and(|error| error.is_absence()));
        return Ok(());
    }
    let all: Vec<u32> = (0..gpus.min(TEAM_RANKS)).collect();
    for team in [Team::cuda(&[0, 0])?, Team::cuda(&all)?] {
        (0..20).try_for_each(|_| check(&team))?;
        team.synchronize()?;
    }
    Ok(())
}

/// Runs the kernel with `from` replaced by `to` under all seeds, and returns the last error.
#[track_caller]
fn mutated(from: &'static str, to: &'static str) -> String {
    assert!(PTX.contains(from), "{from}");
    let mut text = String::new();
    for seed in SEEDS {
        let team = Team::simulator(3).expect("a team").seed(seed).instruction_limit(1 << 22);
        let team = team.rewriting(move |spec| Some(spec.ptx.replace(from, to)));
        let error = Tensors::new(&team).and_then(|mut tensors| tensors.launch(&team)).err();
        text = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(text.starts_with("TMA0616"), "seed {seed}: {text}");
    }
    text
}

#[test]
fn device_scope_is_found_to_end_at_the_rank() {
    for (from, to) in [("red.release.sys", "red.release.gpu"), ("ld.acquire.sys", "ld.acquire.gpu")] {
        let text = mutated(from, to);
        assert!(text.contains("device scope does not reach from rank"), "{text}");
        assert!(text.contains("use system scope") && text.contains(" of rank "), "{text}");
    }
}

#[test]
fn missing_orders_are_found() {
    assert!(mutated("red.release.sys", "red.relaxed.sys").contains("race: "));
    assert!(mutated("ld.acquire.sys", "ld.relaxed.sys").contains("race: "));
}

#[test]
fn a_rank_that_ends_early_is_named() {
    // Only the data of the first rank is below 64.
    let text = mutated(
        "mov.u32 %t, %tid.x;",
        "mov.u32 %t, %tid.x; ld.global.b32 %sum, [%data]; setp.lt.u32 %p2, %sum, 64; @%p2 ret;",
    );
    assert!(text.contains("all blocks of rank 0 have ended"), "{text}");
}

#[test]
fn tma0514_tensors_belong_to_their_rank() -> Result<(), Error> {
    let code = |result: Result<(), Error>| result.err().map(|error| error.code());
    let (team, other) = (Team::simulator(2)?, Team::simulator(2)?);
    let mut tensors = Tensors::new(&team)?;
    assert_eq!(code(tensors.launch(&other)), Some("TMA0514"));
    let mut args = tensors.args();
    args.swap(0, 1);
    assert_eq!(code(launch_team(&team, &SUM, Grid::x(1), &args)), Some("TMA0514"));
    drop(args);
    assert_eq!(code(tensors.launch(&team)), None);
    Ok(())
}

#[test]
fn tma0636_each_rank_has_a_list_of_arguments() -> Result<(), Error> {
    let code = |result: Result<(), Error>| result.err().map(|error| error.code());
    let team = Team::simulator(3)?;
    let mut tensors = Tensors::new(&team)?;
    let mut args = tensors.args();
    let last = args.pop().expect("of the last rank");
    assert_eq!(code(launch_team(&team, &SUM, Grid::x(1), &args)), Some("TMA0636"));
    args.push(Vec::new());
    assert_eq!(code(launch_team(&team, &SUM, Grid::x(1), &args)), Some("TMA0516"));
    args.pop();
    args.push(last);
    assert_eq!(code(launch_team(&team, &SUM, Grid::new(0, 1, 1), &args)), Some("TMA0610"));
    assert_eq!(code(launch_team(team.with().cluster([2, 1, 1]), &SUM, Grid::x(2), &args)), Some("TMA0624"));
    assert_eq!(code(launch_team(team.with(), &SUM, Grid::x(1), &args)), None);
    Ok(())
}

#[test]
fn ranks_run_other_kernels_alone() -> Result<(), Error> {
    let team = Team::simulator(2)?;
    let mut tensors = Tensors::new(&team)?;
    let args = tensors.args().swap_remove(1);
    // Without its peer the rank waits for ever.
    let alone = super::super::launch(team.device(1)?, &SUM, Grid::x(1), &args);
    let text = alone.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("deadlock") && !text.contains("of rank"), "{text}");
    Ok(())
}

#[test]
fn clusters_and_kernels_are_those_of_the_team() -> Result<(), Error> {
    const CLUSTERS: KernelParts =
        KernelParts { cluster: Cluster::AtLaunch { most: 8 }, ..KernelParts::NOTHING };
    // SAFETY: the kernel does nothing.
    static SPEC: KernelSpec = unsafe { KernelSpec::from_parts(CLUSTERS) };
    let team = Team::simulator(2)?;
    let args = [vec![], vec![]];
    launch_team(team.with().cluster([2, 1, 1]).watched(Duration::from_secs(1)), &SPEC, Grid::x(4), &args)?;
    let refused = launch_team(&team, &SPEC, Grid::x(4), &args);
    assert_eq!(refused.err().map(|error| error.code()), Some("TMA0623"));
    Ok(())
}
