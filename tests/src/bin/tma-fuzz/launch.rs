//! The target `launch`: launches that nobody would ask for, by the simulator's interface and by the runtime's.

use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module};

use crate::command::{self, Commands};
use crate::copies::Copies;
use crate::draw::Draw;
use crate::host::Host;
use crate::{Input, maps, ptx};

/// Bytes of each of the buffers that arguments point to.
const BUFFER: u64 = 1 << 14;
/// Thread-instructions that a cluster may run.
const INSTRUCTIONS: u64 = 20_000;
/// Blocks of a grid that is not refused: they run one after the other.
const BLOCKS: u64 = 64;

/// Launches without end.
pub(crate) struct Launches {
    draw: Draw,
    modules: Vec<Module>,
    copies: Copies,
    host: Host,
    commands: Commands,
}

impl Launches {
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        let modules = ptx::corpus()?.iter().map(|text| Module::load(text)).collect::<Result<Vec<_>, _>>()?;
        println!("{} modules to launch, seed {seed}", modules.len());
        let draw = Draw::new(seed);
        let host = Host::new(&draw)?;
        Ok(Self { draw, modules, copies: Copies::new()?, host, commands: Commands::new() })
    }

    /// The next launch.
    pub(crate) fn next(&self) -> Input<'_> {
        let draw = &self.draw;
        match draw.below(10) {
            0..4 => self.kernel(),
            4..6 => match self.copies.copy(draw) {
                Some(copy) => {
                    Input { text: format!("{copy:#?}"), run: Box::new(move || self.copies.run(copy)) }
                }
                None => self.kernel(),
            },
            6..8 => self.host.next(draw),
            8 => {
                let options = self.commands.options(draw);
                let text = options.join("\n");
                Input { text, run: Box::new(move || command::are_understood(&options)) }
            }
            _ => {
                let file = command::file(draw);
                let text = file.escape_ascii().to_string();
                Input { text, run: Box::new(move || command::is_array(&file)) }
            }
        }
    }

    /// A kernel of the tree, with whatever grid and arguments.
    fn kernel(&self) -> Input<'_> {
        let draw = &self.draw;
        let module = draw.one_of(&self.modules);
        let kernels: Vec<_> = module.kernels().collect();
        let kernel = draw.one_of(&kernels);
        let mut memory = GlobalMemory::default();
        let buffers: Vec<_> = (0..3).filter_map(|_| memory.allocate(BUFFER, draw.once_in(2))).collect();
        let mut args: Vec<_> = kernel
            .param_bytes()
            .iter()
            .map(|&bytes| match bytes {
                128 => Arg::Map(maps::any(*draw.one_of(&buffers), BUFFER, draw)),
                8 if draw.once_in(2) => Arg::Address(*draw.one_of(&buffers)),
                _ => Arg::Bytes(draw.mostly(20).to_le_bytes()[..(bytes as usize).min(8)].into()),
            })
            .collect();
        if draw.once_in(8) {
            let at = draw.below(args.len());
            match draw.below(3) {
                0 => args.truncate(at),
                1 => args.push(Arg::Address(draw.number())),
                _ => args
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|arg| *arg = Arg::Bytes(vec![1; draw.below(300)])),
            }
        }
        let name = if draw.once_in(32) { "absent" } else { kernel.name() }.to_owned();
        let config = LaunchConfig {
            grid: grid(draw),
            block: near(kernel.required_threads().unwrap_or([64, 1, 1]), draw),
            cluster: near(kernel.required_cluster().unwrap_or([1; 3]), draw),
            dynamic_shared_bytes: draw.mostly(70_000) as u32,
            seed: draw.bits(),
            host_threads: draw.mostly(1) as usize,
            instruction_limit: draw.number().min(INSTRUCTIONS),
            ..LaunchConfig::default()
        };
        let text = format!("{name}\n{config:#?}\n{args:#?}");
        Input {
            text,
            run: Box::new(move || ptx_sim::launch(module, &mut memory, &name, &config, &args).is_ok()),
        }
    }
}

/// Extents that are often as they should be.
fn near(wanted: [u32; 3], draw: &Draw) -> [u32; 3] {
    let mut extents = wanted;
    if draw.once_in(4) {
        extents[draw.below(3)] = draw.number() as u32;
    }
    extents
}

/// Blocks along each axis: few, or more than there can be.
fn grid(draw: &Draw) -> [u32; 3] {
    let grid = near([1 + draw.below(4) as u32, 1 + draw.below(3) as u32, 1], draw);
    let blocks = grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
    let is_refused = grid[0] > i32::MAX as u32 || grid[1].max(grid[2]) > 65_535;
    if blocks <= BLOCKS || is_refused { grid } else { [2, 2, 1] }
}
