//! Name resolution while a kernel is linked, and the allocation of its registers and variables.

use crate::isa::{Constant, Inst, Label, Op, Pc, Reg, Slot, Special, VariableId};
use std::collections::HashMap;

use tma_model::limits::RESERVED_SHARED_BYTES;

use crate::parse::LoadError;
use crate::parse::syntax::{Source, Statement, Variable, VariableSpace};

/// The most bytes of a thread's local memory, and of a block's static shared memory.
const MOST_BYTES: u64 = 512 << 10;

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    Register {
        reg: Reg,
        bits: u32,
    },
    /// A range of a thread's local memory: a local variable, or a parameter of a call.
    Local(Slot),
    /// A parameter of the kernel.
    Param(Slot),
    Shared(u32),
    DynamicShared,
    /// A global or constant variable, by its index in the module.
    Variable(VariableId),
    Label(Label),
    /// `.branchtargets`.
    Targets(Vec<Label>),
}

/// A range of registers such as `%r<100>`.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    count: u32,
    bits: u32,
}

#[derive(Debug, Default)]
struct Scope<'s> {
    names: HashMap<&'s str, Binding>,
    ranges: HashMap<&'s str, Range>,
}

/// A kernel that is being linked.
#[derive(Debug)]
pub(crate) struct Builder<'m, 's> {
    pub(crate) source: &'m Source<'s>,
    pub(crate) code: Vec<Inst>,
    /// The number of registers.
    pub(crate) registers: u32,
    pub(crate) constants: Vec<Constant>,
    constant_regs: HashMap<Constant, Reg>,
    pub(crate) specials: Vec<(Reg, Special)>,
    pub(crate) local_bytes: u32,
    /// The end of the static shared memory declared so far.
    pub(crate) shared_end: u32,
    pub(crate) dynamic_align: u32,
    module_shared: HashMap<&'s str, u32>,
    scopes: Vec<Scope<'s>>,
    /// The registers that the current instruction names.
    pub(crate) named: Vec<Reg>,
    /// The number of times that each register was named.
    mentions: HashMap<Reg, u32>,
    /// The instruction of each label, once it has been passed.
    labels: Vec<Option<Pc>>,
    /// Branches, with their target labels.
    branches: Vec<(Pc, Vec<Label>)>,
    /// The file and line of the latest `.loc`.
    pub(crate) source_line: Option<(u32, u32)>,
}

impl<'m, 's> Builder<'m, 's> {
    pub(crate) fn new(source: &'m Source<'s>) -> Self {
        Builder {
            source,
            code: Vec::new(),
            registers: Reg::FIRST_FREE,
            constants: Vec::new(),
            constant_regs: HashMap::new(),
            named: Vec::new(),
            mentions: HashMap::new(),
            specials: Vec::new(),
            local_bytes: 0,
            shared_end: RESERVED_SHARED_BYTES,
            dynamic_align: 1,
            module_shared: HashMap::new(),
            scopes: Vec::new(),
            labels: Vec::new(),
            branches: Vec::new(),
            source_line: None,
        }
    }

    /// Opens a scope for a body or a block within one. Its labels may be named before they are
    /// passed.
    pub(crate) fn open(&mut self, statements: &[Statement<'s>]) -> Result<(), LoadError> {
        let mut scope = Scope::default();
        for statement in statements {
            let Statement::Label(name, line) = statement else { continue };
            let label = Label(self.labels.len() as u32);
            self.labels.push(None);
            if scope.names.insert(*name, Binding::Label(label)).is_some() {
                return Err(LoadError::new(*line, format!("the label `{name}` is defined twice")));
            }
        }
        self.scopes.push(scope);
        Ok(())
    }

    pub(crate) fn close(&mut self) {
        self.scopes.pop();
    }

    pub(crate) fn name(&mut self, name: &'s str, named: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, named);
        }
    }

    pub(crate) fn declare_registers(
        &mut self,
        name: &'s str,
        count: Option<u32>,
        bits: u32,
        line: u32,
    ) -> Result<(), LoadError> {
        let first = self.registers;
        let all = u64::from(first) + u64::from(count.unwrap_or(1)) * u64::from(registers_of(bits));
        if all > 1 << 20 {
            return Err(LoadError::new(line, "too many registers for a kernel"));
        }
        self.registers = all as u32;
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        match count {
            Some(count) => {
                scope.ranges.insert(name, Range { first, count, bits });
            }
            None => {
                scope.names.insert(name, Binding::Register { reg: Reg(first), bits });
            }
        }
        Ok(())
    }

    /// Allocates a register without a name.
    pub(crate) fn fresh_register(&mut self) -> Reg {
        self.registers += 1;
        Reg(self.registers - 1)
    }

    /// Allocates a variable of a body.
    pub(crate) fn variable(&mut self, variable: &Variable<'s>) -> Result<(), LoadError> {
        let named = match variable.space {
            VariableSpace::Local | VariableSpace::Param => Binding::Local(self.local(variable)?),
            VariableSpace::Shared if variable.external || variable.bytes.is_none() => self.dynamic(variable),
            VariableSpace::Shared => Binding::Shared(self.shared(variable)?),
            VariableSpace::Global | VariableSpace::Const | VariableSpace::Reg => {
                return Err(LoadError::new(
                    variable.line,
                    format!("`{}`: variables of this space inside a body are not supported", variable.name),
                ));
            }
        };
        self.name(variable.name, named);
        Ok(())
    }

    pub(crate) fn local(&mut self, variable: &Variable<'s>) -> Result<Slot, LoadError> {
        let slot = reserve(self.local_bytes, variable)?;
        self.local_bytes = slot.offset + slot.bytes;
        Ok(slot)
    }

    fn shared(&mut self, variable: &Variable<'s>) -> Result<u32, LoadError> {
        let slot = reserve(self.shared_end, variable)?;
        self.shared_end = slot.offset + slot.bytes;
        Ok(slot.offset)
    }

    fn dynamic(&mut self, variable: &Variable<'s>) -> Binding {
        self.dynamic_align = self.dynamic_align.max(variable.align);
        Binding::DynamicShared
    }

    /// Returns whether a register is written by one instruction and read by none.
    pub(crate) fn is_unread(&self, reg: Reg) -> bool {
        self.mentions.get(&reg) == Some(&1)
    }

    /// Returns the index of the next instruction.
    pub(crate) fn here(&self) -> Pc {
        Pc(self.code.len() as u32)
    }

    /// Records that the current instruction branches to these labels.
    pub(crate) fn branches_to(&mut self, labels: Vec<Label>) {
        self.branches.push((self.here(), labels));
    }

    /// Places a label at the next instruction.
    pub(crate) fn pass(&mut self, label: Label) {
        self.labels[label.index()] = Some(self.here());
    }

    /// Resolves the labels of all branches.
    pub(crate) fn resolve_labels(&mut self, line: u32) -> Result<(), LoadError> {
        for (pc, labels) in &self.branches {
            let Op::Control(branch) = &mut self.code[pc.index()].op else { continue };
            debug_assert_eq!(branch.targets_mut().len(), labels.len(), "every branch waits for its labels");
            for (target, label) in branch.targets_mut().iter_mut().zip(labels) {
                let passed = self.labels.get(label.index()).copied().flatten();
                *target = passed.ok_or_else(|| LoadError::new(line, "a label that is in no place"))?;
            }
        }
        Ok(())
    }

    /// Looks up a name, from the innermost scope outwards.
    pub(crate) fn find(&mut self, name: &str, line: u32) -> Result<Option<Binding>, LoadError> {
        let found = self.look_up(name, line)?;
        if let Some(Binding::Register { reg, .. }) = found {
            *self.mentions.entry(reg).or_default() += 1;
            self.named.push(reg);
        }
        Ok(found)
    }

    fn look_up(&mut self, name: &str, line: u32) -> Result<Option<Binding>, LoadError> {
        for scope in self.scopes.iter().rev() {
            if let Some(named) = scope.names.get(name) {
                return Ok(Some(named.clone()));
            }
            let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
            // The prefix itself may end in digits: `%rd1<5>` includes `%rd12`.
            let mut end = prefix.len();
            while end < name.len() {
                let range = scope.ranges.get(&name[..end]).zip(name[end..].parse::<u32>().ok());
                if let Some((range, index)) = range.filter(|(range, index)| *index < range.count) {
                    let reg = Reg(range.first + index * registers_of(range.bits));
                    return Ok(Some(Binding::Register { reg, bits: range.bits }));
                }
                end += 1;
            }
        }
        if let Some((special, bits)) = special(name) {
            return Ok(Some(Binding::Register { reg: self.special(special), bits }));
        }
        self.of_module(name, line)
    }

    fn of_module(&mut self, name: &str, line: u32) -> Result<Option<Binding>, LoadError> {
        let Some((index, variable)) = self.source.variable(name) else { return Ok(None) };
        Ok(Some(match variable.space {
            VariableSpace::Shared if variable.bytes.is_none() => self.dynamic(variable),
            VariableSpace::Shared => match self.module_shared.get(name) {
                Some(&offset) => Binding::Shared(offset),
                None => {
                    let offset = self.shared(variable)?;
                    self.module_shared.insert(variable.name, offset);
                    Binding::Shared(offset)
                }
            },
            VariableSpace::Global
            | VariableSpace::Const
            | VariableSpace::Local
            | VariableSpace::Param
            | VariableSpace::Reg => {
                if variable.external && variable.bytes.is_none() {
                    return Err(LoadError::new(line, format!("`{name}` is declared but not defined")));
                }
                Binding::Variable(VariableId(index as u32))
            }
        }))
    }

    pub(crate) fn special(&mut self, special: Special) -> Reg {
        if let Some(&(reg, _)) = self.specials.iter().find(|(_, known)| *known == special) {
            return reg;
        }
        let reg = self.fresh_register();
        self.specials.push((reg, special));
        reg
    }

    pub(crate) fn constant(&mut self, constant: Constant) -> Reg {
        if let Some(&reg) = self.constant_regs.get(&constant) {
            return reg;
        }
        let reg = Reg::constant(self.constants.len());
        self.constants.push(constant);
        self.constant_regs.insert(constant, reg);
        reg
    }

    pub(crate) fn bits(&mut self, bits: u64) -> Reg {
        self.constant(Constant::Bits(bits))
    }
}

/// Returns the number of 64-bit registers that a PTX register takes.
fn registers_of(bits: u32) -> u32 {
    bits.div_ceil(64)
}

fn reserve(used: u32, variable: &Variable<'_>) -> Result<Slot, LoadError> {
    let bytes = variable.bytes.unwrap_or(0);
    let offset = u64::from(used).next_multiple_of(u64::from(variable.align.max(1)));
    if offset + bytes > MOST_BYTES {
        return Err(LoadError::new(variable.line, format!("`{}` does not fit its memory", variable.name)));
    }
    Ok(Slot { offset: offset as u32, bytes: bytes as u32 })
}

/// Returns a special register, and its width in bits.
fn special(name: &str) -> Option<(Special, u32)> {
    let axis = |letter: &str| ["x", "y", "z"].iter().position(|axis| *axis == letter);
    if let Some((base, letter)) = name.split_once('.') {
        let axis = axis(letter)?;
        let special = match base {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Ntid(axis),
            "%ctaid" => Special::Ctaid(axis),
            "%nctaid" => Special::Nctaid(axis),
            "%clusterid" => Special::ClusterId(axis),
            "%nclusterid" => Special::NclusterId(axis),
            "%cluster_ctaid" => Special::ClusterCtaid(axis),
            "%cluster_nctaid" => Special::ClusterNctaid(axis),
            _ => return None,
        };
        return Some((special, 32));
    }
    Some(match name {
        "%cluster_ctarank" => (Special::ClusterCtarank, 32),
        "%cluster_nctarank" => (Special::ClusterNctarank, 32),
        "%is_explicit_cluster" => (Special::IsExplicitCluster, 1),
        "%laneid" => (Special::Laneid, 32),
        "%warpid" => (Special::Warpid, 32),
        "%nwarpid" => (Special::Nwarpid, 32),
        "%lanemask_eq" => (Special::LanemaskEq, 32),
        "%lanemask_le" => (Special::LanemaskLe, 32),
        "%lanemask_lt" => (Special::LanemaskLt, 32),
        "%lanemask_ge" => (Special::LanemaskGe, 32),
        "%lanemask_gt" => (Special::LanemaskGt, 32),
        "%smid" => (Special::Smid, 32),
        "%nsmid" => (Special::Nsmid, 32),
        "%gridid" => (Special::Gridid, 64),
        "%dynamic_smem_size" => (Special::DynamicSharedBytes, 32),
        "%total_smem_size" => (Special::TotalSharedBytes, 32),
        "%aggr_smem_size" => (Special::AggregatedSharedBytes, 32),
        "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => (Special::ReservedSharedBytes, 32),
        "%reserved_smem_offset_begin" | "%envreg0" => (Special::Zero, 32),
        _ => return None,
    })
}
