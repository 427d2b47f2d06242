//! NVIDIA's own assembler on the PTX of every instance: no spills, no local memory, and no
//! serialised matmul.
#![cfg(feature = "llvm")]

use std::path::Path;
use std::thread;

use tma_kernels::attention::backward::general as backward_general;
use tma_kernels::attention::backward::kernel::backward::gradients as backward;
use tma_kernels::attention::backward::rows::queries;
use tma_kernels::attention::general::kernel as general;
use tma_kernels::attention::kernel::forward;
use tma_kernels::cached::latent::kernel::warpgroups as latent;
use tma_kernels::cached::{append, few_rows, many_rows, merge};
use tma_kernels::conv::kernel::convolution;
use tma_kernels::gemm::dense::kernels as dense;
use tma_kernels::gemm::few_rows::kernel::streamed;
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::grouped::kernel::grouped;
use tma_kernels::gemm::picked::kernel as picked;
use tma_kernels::gemm::ping_pong::kernels as ping_pong;
use tma_kernels::gemm::scaled::few_rows::exchanged as scaled_few_rows;
use tma_kernels::gemm::scaled::kernel::scaled;
use tma_kernels::gemm::scaled::weights::widened as scaled_weights;
use tma_kernels::gemm::split_k::kernels as split_k;
use tma_kernels::gemm::team::gather_kernel::gathered;
use tma_kernels::gemm::team::scatter_kernel::scattered;
use tma_kernels::model::{
    bias, cross_entropy, embedding, experts, gated, norm, quantize, rotary, sample, softmax, sums,
};
use tma_kernels::optimizer::kernel::flat;
use tma_kernels::team::kernel::{collectives, elements};
use tma_runtime::launch::KernelSpec;
use tma_setup::program::PTXAS;
use tma_setup::ptxas::{self, PtxasReport};

/// The most bytes that the gradients of attention store to the stack and load from it in a round: 16
/// registers. Their sums and operands take 224 of the 240 registers of a thread.
const SPILLED: u32 = 64;

/// Whether a report has nothing that is not expected of a kernel.
fn is_expected(kernel: &KernelSpec, report: &PtxasReport) -> bool {
    let spilled = if kernel.name.starts_with("gradients::") { SPILLED } else { 0 };
    report.warnings.is_empty()
        && report.spills.iter().all(|&bytes| bytes <= spilled)
        && report.stack <= spilled
        && report.kernels == 1
}

/// Returns the complaints of the assembler about these kernels.
fn messages(assembler: &Path, kernels: &[&KernelSpec]) -> Vec<String> {
    let message = |kernel: &&KernelSpec| match ptxas::assemble(assembler, "sm_90a", kernel.ptx) {
        Ok(report) if is_expected(kernel, &report) => None,
        Ok(report) => Some(format!("{}: {report:#?}", kernel.name)),
        Err(error) => Some(format!("{}: {error}", kernel.name)),
    };
    kernels.iter().filter_map(message).collect()
}

#[test]
fn every_instance_is_assembled_as_expected() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
    let assembler = PTXAS.require(&tools, "cargo xtask setup").unwrap_or_else(|error| panic!("{error}")).path;
    let products = dense::plain::INSTANCES.iter().chain(&split_k::split_k::INSTANCES);
    let products = products.chain(&ping_pong::ping_pong::INSTANCES).chain(&streamed::multiply::INSTANCES);
    let products = products.chain(&with_options::full::INSTANCES).chain(&picked::full::INSTANCES);
    let products = products.chain(&scaled::promoted::INSTANCES).chain(&grouped::rows::INSTANCES);
    let products = products.chain(&scaled_few_rows::promoted::INSTANCES);
    let products = products.chain(&scaled_weights::multiply::INSTANCES);
    let products = products.chain(&gathered::gather_multiply::INSTANCES);
    let products = products.chain(&scattered::multiply_scatter::INSTANCES);
    let others = convolution::forward::INSTANCES.iter().chain(&forward::attention::INSTANCES);
    let others = others.chain(&general::attention::INSTANCES);
    let others = others.chain(&few_rows::warps::attend::INSTANCES);
    let others = others.chain(&many_rows::warpgroups::attend::INSTANCES);
    let others = others.chain(&latent::attend_latents::INSTANCES);
    let others = others.chain(&merge::rows::merge::INSTANCES);
    let others = others.chain(&append::kernel::rows::append::INSTANCES);
    let rows = norm::kernel::rows::normalise::INSTANCES.iter();
    let rows = rows.chain(&gated::kernel::rows::multiply::INSTANCES);
    let rows = rows.chain(&embedding::kernel::rows::look_up::INSTANCES);
    let rows = rows.chain(&quantize::kernel::rows::quantise::INSTANCES);
    let rows = rows.chain(&softmax::kernel::rows::softmax::INSTANCES);
    let rows = rows.chain(&rotary::kernel::rows::turn::INSTANCES);
    let rows = rows.chain(&norm::staged::batches::normalise_staged::INSTANCES);
    let rows = rows.chain(&quantize::staged::batches::quantise_staged::INSTANCES);
    let rows = rows.chain(&softmax::staged::batches::softmax_staged::INSTANCES);
    let rows = rows.chain(&experts::router::tokens::choose::INSTANCES);
    let rows = rows.chain([&experts::router::tokens::place::SPEC]);
    let rows = rows.chain(&experts::moves::rows::distribute::INSTANCES);
    let rows = rows.chain(&experts::moves::rows::collect::INSTANCES);
    let rows = rows.chain(&sample::kernel::rows::scan::INSTANCES);
    let rows = rows.chain(&sample::kernel::rows::draw::INSTANCES);
    let rows = rows.chain(&cross_entropy::kernel::rows::losses::INSTANCES);
    let rows = rows.chain(&cross_entropy::staged::pieces::losses_staged::INSTANCES);
    let rows = rows.chain([&cross_entropy::kernel::rows::count_labels::SPEC]);
    let rows = rows.chain([&cross_entropy::kernel::rows::mean_loss::SPEC]);
    let gradients = norm::gradient::rows::differentiate::INSTANCES.iter();
    let gradients = gradients.chain(&norm::gradient_long::rows::differentiate_long::INSTANCES);
    let gradients = gradients.chain(&norm::gradient_staged::batches::differentiate_staged::INSTANCES);
    let gradients = gradients.chain(&gated::gradient::rows::slopes::INSTANCES);
    let gradients = gradients.chain(&gated::gradient_staged::batches::slopes_staged::INSTANCES);
    let gradients = gradients.chain(&softmax::gradient::rows::softmax_slopes::INSTANCES);
    let gradients = gradients.chain([&embedding::order::positions::sort::SPEC]);
    let gradients = gradients.chain(&embedding::gradient::tokens::add_rows::INSTANCES);
    let gradients = gradients.chain(&embedding::gradient::tokens::join::INSTANCES);
    let gradients = gradients.chain(&sums::blocks::add_up::INSTANCES);
    let gradients = gradients.chain(&bias::kernel::rows::add_columns::INSTANCES);
    let gradients = gradients.chain(&backward::INSTANCES);
    let gradients = gradients.chain(&queries::prepare::INSTANCES).chain(&queries::round::INSTANCES);
    let gradients = gradients.chain(&queries::sinks::INSTANCES);
    let gradients = gradients.chain(&backward_general::kernel::gradients::INSTANCES);
    let gradients = gradients.chain(&backward_general::rows::prepare::INSTANCES);
    let gradients = gradients.chain(&backward_general::rows::round::INSTANCES);
    let gradients = gradients.chain(&backward_general::rows::sinks::INSTANCES);
    let optimizer = flat::adamw::INSTANCES.iter().chain(&flat::squares::INSTANCES);
    let optimizer = optimizer.chain([&flat::begin::SPEC, &flat::set_rate::SPEC]);
    let teams = collectives::one_shot::INSTANCES.iter().chain(&collectives::two_shot::INSTANCES);
    let teams =
        teams.chain(&collectives::reduce_scatter::INSTANCES).chain(&collectives::all_gather::INSTANCES);
    let teams = teams.chain(&elements::one_shot::INSTANCES).chain(&elements::two_shot::INSTANCES);
    let teams = teams.chain(&elements::reduce_scatter::INSTANCES).chain(&elements::all_gather::INSTANCES);
    let kernels = products.chain(others).chain(rows).chain(gradients).chain(optimizer).chain(teams);
    let kernels: Vec<_> = kernels.collect();
    let parts = thread::available_parallelism().map_or(1, usize::from);
    let messages: Vec<_> = thread::scope(|scope| {
        // Each thread gets some instances of each kernel, since kernels differ in the time they
        // take.
        let part = |first| kernels.iter().skip(first).step_by(parts).copied().collect::<Vec<_>>();
        let worker = |first| {
            let (assembler, kernels) = (&assembler, part(first));
            scope.spawn(move || messages(assembler, &kernels))
        };
        let workers: Vec<_> = (0..parts).map(worker).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("nobody panics")).collect()
    });
    assert!(messages.is_empty(), "{}", messages.join("\n"));
}
