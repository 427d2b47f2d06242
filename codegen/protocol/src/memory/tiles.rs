//! Accesses to tiles in shared memory: by threads, and by whole warps and warpgroups.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use tma_front::check::layout;
use tma_front::ir::{Expr, Stmt, TileType, Type, WarpStore};
use tma_front::limits::{WARP_THREADS, WARPGROUP_THREADS};
use tma_model::sync::{Access, AccessKind, Proxy};

use super::region::{Region, element_offsets, merged};
use crate::finding::UndecidedReason;
use crate::lanes::Lanes;
use crate::run::{Run, StepFlow, StepResult};
use crate::state::WarpRendezvous;
use crate::to_u32;

const READ: Access = Access::weak(Proxy::Generic, AccessKind::Read);
const WRITE: Access = Access::weak(Proxy::Generic, AccessKind::Write);

impl Run<'_, '_> {
    pub(crate) fn tile_access(
        &mut self,
        stmt: &Stmt,
        tile: &Expr,
        at: &[Expr],
        vector: u32,
        access: Access,
    ) -> StepResult {
        let Type::Tile(ty) = tile.ty.local() else { return Ok(()) };
        if let Some((block, range)) = self.one_of(tile) {
            self.charge()?;
            return self.access_shared(stmt.id, block, access, Region::Some(range), None);
        }
        let (block, base) = self.addresses(tile)?;
        self.use_remote_memory(stmt.id, block)?;
        self.charge()?;
        let coordinates: Option<Vec<_>> = at.iter().map(|at| self.indices(at)).collect();
        let offsets = coordinates.and_then(|all| element_offsets(ty, &all));
        let region = match offsets.and_then(|offsets| base.zip(&offsets, |base, offset| Some(base + offset)))
        {
            Some(at) => Region::Each(at, vector * ty.element.bytes()),
            None => {
                let base = self.uniform(&base)?;
                Region::Some(base..base + to_u32(ty.shared_bytes()))
            }
        };
        self.log_banks(stmt.id, block, &region);
        self.access_shared(stmt.id, block, access, region, None)
    }

    /// Stores an accumulator of a whole warpgroup. Each thread writes its own elements.
    pub(crate) fn store_accumulator(&mut self, stmt: &Stmt, tile: &Expr) -> StepResult {
        let Type::Tile(ty) = tile.ty.local() else { return Ok(()) };
        let bytes = to_u32(layout::size(&Type::Tile(ty.clone())));
        let rows = ty.extents.first().copied().unwrap_or(0);
        let first = self.warpgroup() * WARPGROUP_THREADS;
        let threads = first..first + WARPGROUP_THREADS;
        let (block, region) = self.region_of(tile, |at| {
            let range = at..at + bytes;
            Region::Shared { ranges: Rc::from([range]), rows, threads }
        })?;
        self.access_shared(stmt.id, block, WRITE, region, None)
    }

    /// Lets a warp load part of a tile.
    pub(crate) fn load_of_warps(&mut self, stmt: &Stmt, tile: &Expr) -> StepResult<StepFlow> {
        if self.arrive_together(stmt, WarpRendezvous::At(stmt.id), UndecidedReason::Undefined)?
            == StepFlow::Blocked
        {
            return Ok(StepFlow::Blocked);
        }
        let Type::Tile(ty) = tile.ty.local() else { return Ok(StepFlow::Next) };
        let bytes = to_u32(ty.shared_bytes());
        let (block, region) = self.region_of(tile, |at| Region::Some(at..at + bytes))?;
        self.access_shared(stmt.id, block, READ, region, None)?;
        Ok(StepFlow::Next)
    }

    /// Lets each warp store its accumulator to a part of a tile. Each thread writes its own
    /// elements.
    pub(crate) fn store_of_warps(&mut self, stmt: &Stmt, store: &WarpStore) -> StepResult<StepFlow> {
        if self.arrive_together(stmt, WarpRendezvous::At(stmt.id), UndecidedReason::Undefined)?
            == StepFlow::Blocked
        {
            return Ok(StepFlow::Blocked);
        }
        let Type::Accumulator(of) = self.input.kernel.kernel().local(store.accumulator).ty else {
            return Ok(StepFlow::Next);
        };
        let Type::Tile(ty) = store.tile.ty.local() else { return Ok(StepFlow::Next) };
        let (block, base) = self.address(&store.tile)?;
        let Some(corners) = self.corners_of_warps(&store.at) else {
            let region = Region::Some(base..base + to_u32(ty.shared_bytes()));
            self.access_shared(stmt.id, block, WRITE, region, None)?;
            return Ok(StepFlow::Next);
        };
        for (warp, corner) in corners {
            self.policy.budget.take_work(u64::from(of.rows * of.columns))?;
            let region = match part_of_tile(ty, corner, [of.rows, of.columns]) {
                Some(part) => {
                    let ranges = part.iter().map(|part| base + part.start..base + part.end).collect();
                    let threads = warp * WARP_THREADS..(warp + 1) * WARP_THREADS;
                    Region::Shared { ranges, rows: of.rows, threads }
                }
                None => Region::Some(base..base + to_u32(ty.shared_bytes())),
            };
            self.access_shared(stmt.id, block, WRITE, region, None)?;
        }
        Ok(StepFlow::Next)
    }

    /// Returns the row and the column for each warp of the group, if they are known and the same
    /// for all threads of the warp.
    fn corners_of_warps(&mut self, corner: &[Expr; 2]) -> Option<BTreeMap<u32, [u32; 2]>> {
        let [row, column] = corner;
        let (row, column) = (self.indices(row)?, self.indices(column)?);
        let mut corners = BTreeMap::new();
        for (lane, thread) in self.agent().threads.iter().enumerate() {
            let corner = [row.get(lane)?, column.get(lane)?];
            if *corners.entry(thread / WARP_THREADS).or_insert(corner) != corner {
                return None;
            }
        }
        Some(corners)
    }
}

/// Returns the bytes of a tile's elements, for a tile at an address. These are fewer than the tile
/// takes if its rows are shorter than the span of its swizzle.
pub(crate) fn bytes_of_elements(ty: &TileType, at: u32) -> Rc<[Range<u32>]> {
    let whole = at..at + to_u32(ty.shared_bytes());
    let (width, outer) = ty.extents.split_last().map_or((0, &[][..]), |(width, outer)| (*width, outer));
    if ty.bytes() == ty.shared_bytes() {
        return Rc::from([whole]);
    }
    let rows = outer.iter().product();
    let flat = TileType { extents: vec![rows, width], ..ty.clone() };
    match part_of_tile(&flat, [0, 0], [rows, width]) {
        Some(parts) => parts.iter().map(|part| at + part.start..at + part.end).collect(),
        None => Rc::from([whole]),
    }
}

/// Returns the bytes of `of` rows and columns of a tile, starting at the row and column `from`.
fn part_of_tile(ty: &TileType, from: [u32; 2], of: [u32; 2]) -> Option<Rc<[Range<u32>]>> {
    let (bytes, [row, column], [rows, columns]) = (ty.element.bytes(), from, of);
    let (last_row, last_column) = (row.checked_add(rows)?, column.checked_add(columns)?);
    let all_columns = Lanes::of((column..last_column).collect())?;
    let mut ranges = vec![];
    for row in row..last_row {
        let offsets = element_offsets(ty, &[Lanes::Same(row), all_columns.clone()])?;
        for index in 0..columns as usize {
            let start = offsets.get(index)?;
            ranges.push(start..start + bytes);
        }
    }
    Some(merged(ranges))
}
