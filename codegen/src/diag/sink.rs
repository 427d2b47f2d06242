//! Collects the errors of a stage, so that the user sees all of them at once.

use std::collections::{BTreeSet, HashMap};

use super::Code;
use crate::ir::Span;

/// A broken rule: which, where, what was found and wanted, and what to do.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The rule.
    pub code: Code,
    /// The place in the user's source.
    pub span: Span,
    /// What was found, and what is wanted.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Adds what to write instead.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }

    /// The whole text, on as many lines as it has parts.
    pub fn text(&self) -> String {
        match &self.help {
            Some(help) => format!("{}: {}\nhelp: {help}", self.code, self.message),
            None => format!("{}: {}", self.code, self.message),
        }
    }

    /// What makes it the same error as another.
    fn key(&self) -> (Code, String, String) {
        (self.code, format!("{:?}", self.span), self.message.clone())
    }
}

/// The errors so far.
#[derive(Debug, Default)]
#[must_use = "errors that nobody reads are errors that nobody sees"]
pub struct Sink {
    errors: Vec<Reported>,
    /// The names of the instances whose errors are taken, in their order.
    instances: Vec<String>,
    /// Which of them is looked at.
    current: Option<usize>,
}

/// An error, and the instance in which it was found.
#[derive(Debug)]
struct Reported {
    error: Diagnostic,
    instance: Option<usize>,
}

impl Sink {
    /// Adds an error; a help may be put on what it returns.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Diagnostic { code, span, message: message.into(), help: None });
        let last = self.errors.len() - 1;
        &mut self.errors[last].error
    }

    /// Adds an error that is made already.
    pub fn push(&mut self, error: Diagnostic) {
        self.errors.push(Reported { error, instance: self.current });
    }

    /// From here on errors are those of this instance, or of none.
    pub fn enter(&mut self, instance: Option<&str>) {
        self.current = instance.map(|name| {
            let known = self.instances.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                self.instances.push(name.to_owned());
                self.instances.len() - 1
            })
        });
    }

    /// How many errors there are.
    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// All errors, in order, without repetitions: each instance of a kernel, and each call of a device
    /// function, reports the same mistake again. What only some of the instances have names them.
    pub fn into_errors(self) -> Vec<Diagnostic> {
        let mut unique: Vec<(Diagnostic, BTreeSet<Option<usize>>)> = vec![];
        let mut places = HashMap::new();
        for Reported { error, instance } in self.errors {
            let place = *places.entry(error.key()).or_insert(unique.len());
            match unique.get_mut(place) {
                Some((_, found_in)) => _ = found_in.insert(instance),
                None => unique.push((error, BTreeSet::from([instance]))),
            }
        }
        let name = |(mut error, found_in): (Diagnostic, BTreeSet<Option<usize>>)| {
            let names: Vec<_> = found_in
                .iter()
                .flatten()
                .map(|&instance| format!("`{}`", self.instances[instance]))
                .collect();
            if !found_in.contains(&None) && names.len() < self.instances.len() {
                let noun = if names.len() == 1 { "instance" } else { "instances" };
                error.message = format!("{} (in the {noun} {})", error.message, names.join(", "));
            }
            error
        };
        unique.into_iter().map(name).collect()
    }
}
