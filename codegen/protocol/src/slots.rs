//! The slots of pipelines: which of their tiles are not loaded.

use tma_front::diag::mistake::UnloadedTiles;
use tma_front::ir::{
    CopyKind, Expr, Kernel, ParamId, Pipeline, SharedId, Span, StmtKind, TileType, Type, visit,
};

/// The name of a slot whose own name is unknown.
const SLOT: &str = "slot";

/// A load into a tile of a pipeline.
struct Load {
    /// The index of the tile in its slot.
    tile: usize,
    /// The span of the tile.
    to: Span,
    /// The span of the statement.
    at: Span,
    map: Option<ParamId>,
}

/// Returns the tiles of a pipeline that no statement loads. If each is loaded somewhere, returns
/// those that have the bytes that a phase lacks, if no others do.
pub(super) fn unloaded(kernel: &Kernel, ring: &Pipeline, lacking_bytes: u64) -> Option<Box<UnloadedTiles>> {
    let loads = loads(kernel, ring);
    let is_loaded = |tile: &usize| loads.iter().any(|load| load.tile == *tile);
    let mut tiles: Vec<usize> = (0..ring.tiles.len()).filter(|tile| !is_loaded(tile)).collect();
    if tiles.is_empty() {
        tiles = with_bytes(kernel, ring, lacking_bytes)?;
    }
    let maps = tiles.iter().map(|&tile| map_for(kernel, ring, tile, &loads)).collect();
    let last = loads.iter().filter(|load| !tiles.contains(&load.tile)).max_by_key(|load| load.at.last_line());
    let slot = last.and_then(|load| load.to.first_text()).filter(|name| is_name(name));
    let slot = slot.unwrap_or_else(|| SLOT.to_owned());
    let sometimes = loads.iter().find(|load| tiles.contains(&load.tile)).map(|load| load.at);
    Some(Box::new(UnloadedTiles { slot, tiles, maps, after: last.map(|load| load.at), sometimes }))
}

/// Returns the loads into tiles of a pipeline.
fn loads(kernel: &Kernel, ring: &Pipeline) -> Vec<Load> {
    let mut all = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let (to, map) = if let StmtKind::TileCopy(copy) = &stmt.kind
            && let CopyKind::Load { to, .. } = &copy.kind
        {
            (to, Some(copy.map.param))
        } else if let StmtKind::BulkCopy(copy) = &stmt.kind
            && let CopyKind::Load { to, .. } = &copy.kind
        {
            (&to.array, None)
        } else {
            return;
        };
        let tile = root(to).and_then(|id| ring.tiles.iter().position(|tile| *tile == id));
        if let Some(tile) = tile {
            all.push(Load { tile, to: to.span, at: stmt.origin.span, map });
        }
    });
    all
}

/// Returns the only tiles of a slot that have this many bytes together.
fn with_bytes(kernel: &Kernel, ring: &Pipeline, bytes: u64) -> Option<Vec<usize>> {
    let sizes: Vec<u64> =
        ring.tiles.iter().map(|&id| tile_type(kernel, id).map_or(0, TileType::bytes)).collect();
    let mut found = None;
    for chosen in 1..1u32 << sizes.len() {
        let tiles: Vec<usize> = (0..sizes.len()).filter(|tile| chosen >> tile & 1 == 1).collect();
        if tiles.iter().map(|&tile| sizes[tile]).sum::<u64>() == bytes && found.replace(tiles).is_some() {
            return None;
        }
    }
    found
}

/// Returns the name of the only parameter that moves tiles like this one, of those that load
/// nothing else of the pipeline if there are any.
fn map_for(kernel: &Kernel, ring: &Pipeline, tile: usize, loads: &[Load]) -> Option<String> {
    let ty = tile_type(kernel, ring.tiles[tile])?;
    let loads_other = |param: ParamId| loads.iter().any(|load| load.map == Some(param) && load.tile != tile);
    let fits = |param: &ParamId| matches!(&kernel.param(*param).ty, Type::TensorMap(moved) if moved == ty);
    let (others, free): (Vec<_>, Vec<_>) =
        (0..).map(ParamId).take(kernel.params.len()).filter(fits).partition(|&id| loads_other(id));
    match (&free[..], &others[..]) {
        ([one], _) | ([], [one]) => Some(kernel.param(*one).name.clone()),
        (_, _) => None,
    }
}

fn tile_type(kernel: &Kernel, id: SharedId) -> Option<&TileType> {
    let Type::Stages(object, _) = &kernel.shared_var(id).ty else { return None };
    if let Type::Tile(tile) = &**object { Some(tile) } else { None }
}

/// Returns the shared variable of which an object is a part.
fn root(object: &Expr) -> Option<SharedId> {
    let mut found = None;
    visit::each_shared(object, &mut |id| found = found.or(Some(id)));
    found
}

/// Whether a token is the name of a variable.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}
