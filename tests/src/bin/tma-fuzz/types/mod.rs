//! The target `types`: made-up bodies for rustc and for the front end, which must agree about every
//! type.
//!
//! The bodies are well typed as they are made; then suffixes of literals and types of variables are
//! left out at random, so that uses have to decide. Two things must hold of each body that rustc
//! takes: the front end takes it too, and every variable has the type that rustc gave it. The
//! second is asked of rustc by a line after each variable, whose type is a tag of the front end's
//! answer. No line of that kind decides a type: a tag is known only when its variable is.

mod body;
mod expr;
mod rustc;
mod stmt;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::draw::Draw;
use body::Template;
use rustc::Package;

/// Bodies in a run of rustc.
const BATCH: usize = 1000;

/// What became of the bodies.
#[derive(Debug, Default)]
struct Count {
    /// Taken by rustc, and by the front end with the same types.
    agreed: usize,
    /// Variables whose types were compared.
    variables: usize,
    /// Refused by both.
    refused: usize,
    /// Refused by rustc alone. The front end need not know of all that rustc asks for.
    taken_alone: usize,
    /// Taken by rustc, and not by the front end, or with other types.
    failed: usize,
}

/// Compares at most `bodies`, as far as the time goes; returns whether rustc and the front end
/// agree.
pub(crate) fn run(bodies: Option<usize>, minutes: f64, seed: u64, folder: &Path) -> anyhow::Result<bool> {
    let package = Package::new(folder)?;
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut count = Count::default();
    let mut made = 0;
    while bodies.map_or(Instant::now() < end, |bodies| made < bodies) {
        let size = bodies.map_or(BATCH, |bodies| BATCH.min(bodies - made));
        let batch: Vec<_> = (made..made + size).map(|number| Body::new(number, seed)).collect();
        compare(&package, &batch, &mut count)?;
        made += size;
    }
    let Count { agreed, variables, refused, taken_alone, failed } = count;
    let taken = agreed + failed;
    println!(
        "{made} bodies: rustc takes {taken}, the front end {agreed} of these, with the same types of {variables} variables; \
         rustc refuses {}, the front end {refused} of these",
        refused + taken_alone
    );
    println!("{} passed, {failed} failed", made - failed);
    Ok(failed == 0)
}

/// A made-up body and what the front end says of it.
struct Body {
    template: Template,
    answer: Answer,
}

/// What the front end says: the type of each variable, or why there is none.
type Answer = Result<HashMap<String, String>, String>;

impl Body {
    /// The `number`-th body of a seed.
    fn new(number: usize, seed: u64) -> Self {
        let draw = Draw::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number as u64));
        let template = body::draw(&draw, number);
        let answer = answer(&template.kernel());
        Self { template, answer }
    }
}

fn answer(kernel: &str) -> Answer {
    match tma_codegen::check("types.rs", kernel) {
        Ok(accepted) => {
            let variables = accepted.kernels.iter().flat_map(|checked| &checked.kernel.kernel().variables);
            Ok(variables.map(|variable| (variable.name.clone(), variable.ty.to_string())).collect())
        }
        Err(failure) => Err(failure.to_string()),
    }
}

/// Whether a refusal is of constants that have no value and of loops that wait for a plain read, and
/// of no type.
fn is_of_no_type(refusal: &str) -> bool {
    let others = ["error[TMA0111]", "error[TMA0713]"].map(|code| refusal.matches(code).count());
    refusal.matches("error[TMA").count() == others.iter().sum::<usize>()
}

/// Has rustc judge a batch, and compares.
fn compare(package: &Package, batch: &[Body], count: &mut Count) -> anyhow::Result<()> {
    let nothing = HashMap::new();
    let texts: Vec<_> =
        batch.iter().map(|body| body.template.rust(body.answer.as_ref().unwrap_or(&nothing))).collect();
    let mut others = vec![];
    for (body, (text, errors)) in batch.iter().zip(texts.iter().zip(package.judge(&texts)?)) {
        // A variable whose type rustc does not know, where it is asked for or elsewhere, is one
        // that it refuses.
        let is_other_type = |(line, error): &&(usize, String)| {
            text.lines().nth(*line).is_some_and(body::is_tag) && !error.contains("annotations needed")
        };
        let (tags, refusals): (Vec<_>, Vec<_>) = errors.iter().partition(is_other_type);
        match (&body.answer, refusals.first(), tags.first()) {
            (Ok(_), None, None) => {
                count.agreed += 1;
                count.variables += text.lines().filter(|line| body::is_tag(line)).count();
            }
            (Err(_), Some(_), _) => count.refused += 1,
            (Ok(_), Some(_), _) => count.taken_alone += 1,
            // rustc's lint refuses these shifts as well; it is off here, for it refuses more than
            // them.
            (Err(refusal), None, _) if is_of_no_type(refusal) => count.refused += 1,
            (Err(refusal), None, _) => {
                count.failed += 1;
                println!("rustc takes what the front end refuses:\n{refusal}\n{}\n", body.template.kernel());
            }
            (Ok(_), None, Some((line, error))) => {
                let report = format!("rustc gives another type in line {}: {error}\n{text}\n", line + 1);
                others.push((body.template.rust(&nothing), report));
            }
        }
    }
    // With a type in dispute rustc says nothing of those that it does not know: it is asked again,
    // without the tags.
    let (texts, reports): (Vec<_>, Vec<_>) = others.into_iter().unzip();
    let verdicts = if texts.is_empty() { vec![] } else { package.judge(&texts)? };
    for (report, errors) in reports.iter().zip(verdicts) {
        if errors.is_empty() {
            count.failed += 1;
            println!("{report}");
        } else {
            count.taken_alone += 1;
        }
    }
    Ok(())
}
