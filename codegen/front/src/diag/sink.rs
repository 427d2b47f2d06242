//! Collects the diagnostics of a stage, so that the user sees all of them at once.

use std::collections::{BTreeSet, HashMap};

use super::mistake::Mistake;
use super::{Code, Diagnostic, Severity};
use crate::ir::{Place, Span};

/// The errors and warnings reported so far.
#[derive(Debug, Default)]
#[must_use = "errors that nobody reads are errors that nobody sees"]
pub struct Sink {
    reported: Vec<Reported>,
    errors: usize,
    /// Names of the instances whose diagnostics are collected, in order.
    instances: Vec<String>,
    /// Index of the current instance.
    current: Option<usize>,
}

impl Diagnostics {
    /// Adds the diagnostics of another stage or kernel.
    pub fn extend(&mut self, more: Self) {
        self.errors.extend(more.errors);
        self.warnings.extend(more.warnings);
    }
}

/// A diagnostic, and the instance in which it was found.
#[derive(Debug)]
struct Reported {
    diagnostic: Diagnostic,
    instance: Option<usize>,
}

/// All diagnostics, in order.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// Diagnostics that stop a kernel.
    pub errors: Vec<Diagnostic>,
    /// Diagnostics that do not.
    pub warnings: Vec<Diagnostic>,
}

impl Sink {
    /// Adds an error.
    pub fn error(&mut self, mistake: impl Into<Mistake>, span: Span) {
        let diagnostic = Diagnostic::new(mistake, span);
        debug_assert!(is_error(&diagnostic), "{}", diagnostic.code());
        self.push(diagnostic);
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, mistake: impl Into<Mistake>, span: Span) {
        let diagnostic = Diagnostic::new(mistake, span);
        debug_assert!(!is_error(&diagnostic), "{}", diagnostic.code());
        self.push(diagnostic);
    }

    /// Adds an existing diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(is_error(&diagnostic));
        self.reported.push(Reported { diagnostic, instance: self.current });
    }

    /// Attributes the following diagnostics to this instance, or to none.
    pub fn enter(&mut self, instance: Option<&str>) {
        self.current = instance.map(|name| {
            let known = self.instances.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                self.instances.push(name.to_owned());
                self.instances.len() - 1
            })
        });
    }

    /// Returns the number of errors. Warnings do not count.
    pub fn len(&self) -> usize {
        self.errors
    }

    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.errors == 0
    }

    /// Returns the errors of [`Sink::into_diagnostics`], and drops the warnings.
    pub fn into_errors(self) -> Vec<Diagnostic> {
        self.into_diagnostics().errors
    }

    /// Returns all errors and warnings, without duplicates: each instance of a kernel, and each
    /// call of a device function, reports the same mistake again. A diagnostic that only occurs in
    /// some of the instances names them.
    pub fn into_diagnostics(self) -> Diagnostics {
        let mut unique: Vec<(Diagnostic, BTreeSet<Option<usize>>)> = vec![];
        let mut indices = HashMap::new();
        for Reported { diagnostic, instance } in self.reported {
            let index = *indices.entry(key(&diagnostic)).or_insert(unique.len());
            match unique.get_mut(index) {
                Some((_, found_in)) => _ = found_in.insert(instance),
                None => unique.push((diagnostic, BTreeSet::from([instance]))),
            }
        }
        let name = |(diagnostic, found_in): (Diagnostic, BTreeSet<Option<usize>>)| {
            let names: Vec<_> =
                found_in.iter().flatten().map(|&instance| self.instances[instance].clone()).collect();
            let is_in_all = found_in.contains(&None) || names.len() == self.instances.len();
            if is_in_all { diagnostic } else { diagnostic.in_instances(names) }
        };
        let (errors, warnings) = unique.into_iter().map(name).partition(is_error);
        Diagnostics { errors, warnings }
    }
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.code().severity() == Severity::Error
}

/// Returns a key that is equal for duplicate diagnostics.
fn key(diagnostic: &Diagnostic) -> (Code, Place, String) {
    let text = diagnostic.parts();
    (text.code, diagnostic.span.place(), text.message)
}
