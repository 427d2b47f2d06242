//! Mixtures of experts: their weights, and their part of a forward pass.

use tma_kernels::gemm::{self, GemmOptions, GroupedOptions, GroupedWorkspace, gemm, gemm_grouped};
use tma_kernels::model::{
    Gate, RouteOptions, RouteWorkspace, RoutesMut, combine, gated_packed, gather, route,
};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::config::{Config, Mixture};
use crate::loader::Loader;
use crate::views::{first_rows, first_rows_mut};

/// The matrices of a layer's experts.
#[derive(Debug)]
pub(crate) struct Experts {
    /// Experts × width.
    router: DeviceTensor<bf16, 2>,
    /// The gates of each expert, and then the others: experts × 2 · expert width × width.
    up: DeviceTensor<bf16, 3>,
    /// Experts × width × expert width.
    down: DeviceTensor<bf16, 3>,
}

/// The names of an expert's matrices, if files have a tensor for each.
#[derive(Clone, Copy)]
pub(crate) struct ExpertNames {
    /// The module of router and experts in a layer.
    pub(crate) block: &'static str,
    pub(crate) gate_and_up: [&'static str; 2],
    pub(crate) down: &'static str,
}

/// The module of router and experts in files that have the matrices of all experts in a tensor.
const PACKED_BLOCK: &str = "mlp";

impl Experts {
    /// Loads the experts of a layer. Files have a tensor for each matrix, as transformers writes
    /// them, or one for all experts, as it has them in memory.
    pub(crate) fn load(
        loader: &mut Loader<'_>,
        config: &Config,
        mixture: &Mixture,
        names: ExpertNames,
        prefix: &str,
    ) -> Result<Self, ModelError> {
        let Mixture { experts, width: inner, .. } = *mixture;
        let width = config.width;
        let packed = |name: &str| format!("{prefix}{PACKED_BLOCK}.experts.{name}");
        let is_packed = loader.has(&packed("gate_up_proj"));
        let block = if is_packed { PACKED_BLOCK } else { names.block };
        let router = loader.matrix(&[(format!("{prefix}{block}.gate.weight"), experts)], width)?;
        let (mut up, mut down) = (vec![], vec![]);
        if is_packed {
            loader.append(&packed("gate_up_proj"), &[experts, 2 * inner, width], &mut up)?;
            loader.append(&packed("down_proj"), &[experts, width, inner], &mut down)?;
        } else {
            for expert in 0..experts {
                let name = |rest: &str| format!("{prefix}{block}.experts.{expert}.{rest}.weight");
                for part in names.gate_and_up {
                    loader.append(&name(part), &[inner, width], &mut up)?;
                }
                loader.append(&name(names.down), &[width, inner], &mut down)?;
            }
        }
        let up = loader.upload(&up, [experts, 2 * inner, width])?;
        Ok(Self { router, up, down: loader.upload(&down, [experts, width, inner])? })
    }
}

/// Memory for the values between the kernels of a mixture.
#[derive(Debug)]
pub(crate) struct MixtureActivations {
    /// Rows × experts.
    logits: DeviceTensor<f32, 2>,
    /// The experts of each row, their weights, and where its rows are in the order of experts: rows
    /// × choices.
    experts: DeviceTensor<u32, 2>,
    weights: DeviceTensor<f32, 2>,
    rows: DeviceTensor<u32, 2>,
    /// The ends of the experts' rows.
    ends: DeviceTensor<u32, 1>,
    /// Hidden states in the order of experts, and then the experts' results.
    grouped: DeviceTensor<bf16, 2>,
    up: DeviceTensor<bf16, 2>,
    gated: DeviceTensor<bf16, 2>,
    routing: RouteWorkspace,
    products: GroupedWorkspace,
}

impl MixtureActivations {
    /// Allocates memory for batches of up to so many tokens.
    pub(crate) fn new(
        device: &Device,
        width: usize,
        mixture: &Mixture,
        rows: usize,
    ) -> Result<Self, ModelError> {
        let Mixture { experts, choices, width: inner, .. } = *mixture;
        Ok(Self {
            logits: device.zeros([rows, experts.next_multiple_of(4)])?, // multiples of 16 bytes
            experts: device.zeros([rows, choices])?,
            weights: device.zeros([rows, choices])?,
            rows: device.zeros([rows, choices])?,
            ends: device.zeros([experts])?,
            grouped: device.zeros([rows * choices, width])?,
            up: device.zeros([rows * choices, 2 * inner])?,
            gated: device.zeros([rows * choices, inner])?,
            routing: RouteWorkspace::new(device, rows, experts)?,
            products: GroupedWorkspace::new(device)?,
        })
    }
}

/// Hidden states and their results.
pub(crate) struct Batch<'a> {
    pub(crate) x: TensorView<'a, bf16, 2>,
    pub(crate) out: TensorViewMut<'a, bf16, 2>,
    pub(crate) rows: usize,
    /// The activation of gates.
    pub(crate) gate: Gate,
}

/// Queues the weighted sum of the results of each row's experts. The choices stay on the device,
/// and launches do not depend on them, so that a graph of them can be launched again.
pub(crate) fn queue(
    on: &impl LaunchOn,
    mixture: &Mixture,
    weights: &Experts,
    batch: Batch<'_>,
    memory: &mut MixtureActivations,
    workspace: &mut gemm::Workspace,
) -> Result<(), ModelError> {
    let Batch { x, out, rows: count, gate } = batch;
    let Mixture { experts: of_layer, choices, normalise, .. } = *mixture;
    let MixtureActivations { logits, experts, weights: shares, rows, ends, grouped, up, gated, .. } = memory;
    let mut of_router = logits.view_mut().slice([0..count, 0..of_layer])?;
    let options = GemmOptions {
        transpose_b: true,
        constant_b: true,
        workspace: Some(workspace),
        ..GemmOptions::default()
    };
    gemm(on, x, &weights.router, of_router.reborrow(), options)?;
    let routes = RoutesMut {
        experts: first_rows_mut(experts, count)?,
        weights: first_rows_mut(shares, count)?,
        rows: first_rows_mut(rows, count)?,
        ends: ends.view_mut(),
    };
    let options = RouteOptions { normalise, workspace: Some(&mut memory.routing) };
    route(on, of_router.as_view(), routes, options)?;

    let all = count * choices;
    gather(on, x, first_rows(rows, count)?, first_rows_mut(grouped, all)?)?;
    let products = &mut memory.products;
    let options = GroupedOptions { transpose_b: true, workspace: Some(products), ..Default::default() };
    let (from, to) = (first_rows(grouped, all)?, first_rows_mut(up, all)?);
    gemm_grouped(on, from, &weights.up, &*ends, to, options)?;
    gated_packed(on, gate, first_rows(up, all)?, first_rows_mut(gated, all)?)?;
    let options = GroupedOptions { transpose_b: true, workspace: Some(products), ..Default::default() };
    let (from, to) = (first_rows(gated, all)?, first_rows_mut(grouped, all)?);
    gemm_grouped(on, from, &weights.down, &*ends, to, options)?;
    let (from, shares) = (first_rows(grouped, all)?, first_rows(shares, count)?);
    Ok(combine(on, from, first_rows(rows, count)?, shares, out)?)
}
