//! A loaded PTX module.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::code;
use crate::isa::float::float_bits;
use crate::isa::{Program, VariableId};
use crate::launch::Error;
use crate::machine::{GlobalMemory, SharedName};
use crate::parse::syntax::{Initial, Source, Variable, VariableSpace};
use crate::parse::{self, LoadError};
use crate::report::Sources;

/// The file and line of `.loc`, for each PTX line.
type Lines = Arc<[Option<(u32, u32)>]>;

/// A PTX module, parsed and decoded. It can be launched any number of times.
#[derive(Debug)]
pub struct Module {
    text: String,
    files: Vec<(u32, String)>,
    programs: Vec<Program>,
    globals: Vec<Global>,
    lines: Lines,
    /// The names that the compiler's comments give to ranges of dynamic shared memory.
    names: Vec<SharedName>,
    /// The addresses of the variables, once a launch has placed them in memory.
    placed: Mutex<Option<Arc<[u64]>>>,
}

/// The initial bytes of a variable, and the addresses stored in them.
#[derive(Debug)]
struct Global {
    bytes: Vec<u8>,
    addresses: Vec<AddressAt>,
    allocated: bool,
    constant: bool,
}

/// The address of variable `variable` plus `plus`, stored at `offset`.
#[derive(Debug)]
struct AddressAt {
    offset: usize,
    variable: VariableId,
    plus: i64,
    bytes: usize,
}

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m> {
    pub(crate) program: &'m Program,
}

impl Kernel<'_> {
    /// The symbol.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// The size of each parameter, in bytes.
    pub fn param_bytes(&self) -> Vec<u32> {
        self.program.params.iter().map(|slot| slot.bytes).collect()
    }

    /// Static shared memory of a block, in bytes.
    pub fn static_shared_bytes(&self) -> u32 {
        self.program.static_shared_bytes()
    }

    /// `.reqntid`: the only shape of block that the kernel can be launched with.
    pub fn required_threads(&self) -> Option<[u32; 3]> {
        self.program.required_threads
    }

    /// Whether clusters can observe the order in which they reach global memory: the kernel has
    /// atomic operations, reductions, or loads and stores stronger than weak there. Its result may
    /// then depend on how many clusters run at a time.
    pub fn shares_memory(&self) -> bool {
        self.program.shares_memory()
    }

    /// `.reqnctapercluster`: the only shape of cluster that the kernel can be launched with.
    pub fn required_cluster(&self) -> Option<[u32; 3]> {
        self.program.required_cluster
    }
}

impl Module {
    /// Parses and decodes PTX.
    ///
    /// # Errors
    ///
    /// If the text is not PTX, or uses something that is not supported. The error names the line.
    pub fn load(ptx: &str) -> Result<Module, LoadError> {
        let source = parse::parse(ptx)?;
        let mut programs = code::link(&source)?;
        let names = SharedName::in_ptx(ptx);
        code::mark_variables(ptx, &names, &mut programs)?;
        let mut left = MOST_BYTES;
        let globals = source.variables.iter().map(|variable| global(&source, variable, &mut left));
        let globals = globals.collect::<Result<_, _>>()?;
        let mut lines = vec![None; ptx.lines().count() + 1];
        for inst in programs.iter().flat_map(|program| &program.code) {
            if let Some(line) = lines.get_mut(inst.site.ptx_line as usize) {
                *line = inst.site.source;
            }
        }
        Ok(Module {
            text: ptx.to_owned(),
            files: source.files.iter().map(|(number, name)| (*number, (*name).to_owned())).collect(),
            programs,
            globals,
            lines: lines.into(),
            names,
            placed: Mutex::new(None),
        })
    }

    /// Returns the kernel with this symbol.
    pub fn kernel(&self, name: &str) -> Option<Kernel<'_>> {
        self.kernels().find(|kernel| kernel.name() == name)
    }

    /// Returns all kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel<'_>> {
        self.programs.iter().map(|program| Kernel { program })
    }

    /// Returns the sources that findings are rendered with. `read` returns the text of a source
    /// file from the name that the PTX gives it, if the file is available.
    pub fn sources(&self, read: impl Fn(&str) -> Option<String>) -> Sources<'_> {
        let files = self.files.iter().map(|(number, name)| (*number, name.clone(), read(name))).collect();
        Sources { ptx: &self.text, files }
    }

    /// Returns the size of dynamic shared memory that holds every variable named by the compiler's
    /// comments, in bytes. 0 if the comments name none.
    pub fn named_shared_bytes(&self) -> u32 {
        self.names.iter().map(|name| name.to).max().unwrap_or(0)
    }

    /// Returns whether both modules were loaded from the same text.
    pub(crate) fn has_text_of(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.text == other.text
    }

    pub(crate) fn lines(&self) -> Lines {
        Arc::clone(&self.lines)
    }

    /// Returns the named variables in shared memory, if its dynamic part starts at `start`.
    pub(crate) fn names(&self, start: u32) -> Arc<[SharedName]> {
        let moved = |name: &SharedName| SharedName {
            from: name.from.saturating_add(start),
            to: name.to.saturating_add(start),
            ..name.clone()
        };
        self.names.iter().map(moved).collect()
    }

    /// Returns the addresses of all variables. The first call places them in `memory`.
    pub(crate) fn variables(&self, memory: &mut GlobalMemory) -> Result<Arc<[u64]>, Error> {
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = placed.as_ref() {
            return Ok(Arc::clone(addresses));
        }
        let mut addresses = Vec::new();
        for global in &self.globals {
            let address = if global.allocated {
                memory.allocate(global.bytes.len() as u64, false).ok_or(Error::Memory)?
            } else {
                0
            };
            addresses.push(address);
        }
        for (global, address) in self.globals.iter().zip(&addresses).filter(|(global, _)| global.allocated) {
            let mut bytes = global.bytes.clone();
            for at in &global.addresses {
                let value =
                    addresses.get(at.variable.index()).copied().unwrap_or(0).wrapping_add_signed(at.plus);
                if let Some(target) = bytes.get_mut(at.offset..at.offset + at.bytes) {
                    target.copy_from_slice(&value.to_le_bytes()[..at.bytes]);
                }
            }
            memory.write(*address, &bytes).map_err(|_| Error::Memory)?;
        }
        let addresses: Arc<[u64]> = addresses.into();
        *placed = Some(Arc::clone(&addresses));
        Ok(addresses)
    }
}

impl Module {
    /// Returns the address ranges of the `.const` variables. `addresses` is the result of
    /// [`variables`](Self::variables).
    pub(crate) fn const_ranges(&self, addresses: &[u64]) -> Vec<Range<u64>> {
        let constants = self.globals.iter().zip(addresses).filter(|(global, _)| global.constant);
        constants.map(|(global, &address)| address..address + global.bytes.len() as u64).collect()
    }
}

/// The most bytes that the variables of a module may have together. The host keeps them twice.
const MOST_BYTES: u64 = 1 << 30;

/// Builds a variable. `left` is the number of bytes that remain for this variable and those after
/// it.
fn global(source: &Source<'_>, variable: &Variable<'_>, left: &mut u64) -> Result<Global, LoadError> {
    let allocated = matches!(variable.space, VariableSpace::Global | VariableSpace::Const);
    let size = variable.bytes.filter(|_| allocated).unwrap_or(0);
    let Some(rest) = left.checked_sub(size) else {
        let message =
            format!("`{}`: the variables have more than {MOST_BYTES} bytes together", variable.name);
        return Err(LoadError::new(variable.line, message));
    };
    *left = rest;
    let mut bytes = vec![0; size as usize];
    let scalar = variable.scalar_bytes as usize;
    let mut addresses = Vec::new();
    for (index, initial) in variable.initial.iter().enumerate() {
        let offset = index * scalar;
        let value = match *initial {
            Initial::Bits(bits) => bits,
            Initial::Number(number) => float_bits(number.to_bits(), scalar as u32 * 8, false),
            Initial::Address { symbol, offset: plus } => {
                let found = source.variable(symbol).filter(|_| matches!(scalar, 4 | 8));
                let Some((target, _)) = found else {
                    let message = format!("the address of `{symbol}` as an initial value is not supported");
                    return Err(LoadError::new(variable.line, message));
                };
                addresses.push(AddressAt {
                    offset,
                    variable: VariableId(target as u32),
                    plus,
                    bytes: scalar,
                });
                continue;
            }
        };
        let wide = u128::from(value).to_le_bytes();
        if let (Some(target), Some(from)) = (bytes.get_mut(offset..offset + scalar), wide.get(..scalar)) {
            target.copy_from_slice(from);
        }
    }
    let constant = variable.space == VariableSpace::Const;
    Ok(Global { bytes, addresses, allocated, constant })
}
