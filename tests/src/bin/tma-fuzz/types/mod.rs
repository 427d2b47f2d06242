//! The target `types`: generated bodies for rustc and for the front end, which must agree on every
//! type.
//!
//! The bodies are well typed as generated. Suffixes of literals and types of variables are then
//! omitted at random, so that uses have to decide. Two properties must hold for each body that
//! rustc accepts: the front end accepts it too, and every variable has the type that rustc infers.
//! To test the second, rustc gets a line after each variable that tags it with the front end's
//! type. Such a line never decides a type: a tag's type is only known once that of its variable is.

mod body;
mod expr;
mod rustc;
mod stmt;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::rng::Rng;
use body::Template;
use rustc::Package;

/// The number of bodies in a run of rustc.
const BATCH: usize = 1000;

/// The verdicts on the bodies.
#[derive(Debug, Default)]
struct Count {
    /// Accepted by rustc, and by the front end with the same types.
    agreed: usize,
    /// The number of variables whose types were compared.
    variables: usize,
    /// Rejected by both.
    refused: usize,
    /// Rejected by rustc only. The front end need not check everything that rustc does.
    taken_alone: usize,
    /// Accepted by rustc, but not by the front end, or with other types.
    failed: usize,
}

/// Compares at most `bodies` bodies within the time. Returns whether rustc and the front end agree.
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

/// A generated body, and the front end's result for it.
struct Body {
    template: Template,
    inferred: InferredTypes,
}

/// The front end's result: the type of each variable, or the errors.
type InferredTypes = Result<HashMap<String, String>, String>;

impl Body {
    /// Generates the `number`-th body of a seed.
    fn new(number: usize, seed: u64) -> Self {
        let rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number as u64));
        let template = body::generate(&rng, number);
        let inferred = inferred(&template.kernel());
        Self { template, inferred }
    }
}

fn inferred(kernel: &str) -> InferredTypes {
    match tma_codegen::check("types.rs", kernel) {
        Ok(accepted) => {
            let variables = accepted.kernels.iter().flat_map(|checked| &checked.kernel.kernel().variables);
            Ok(variables.map(|variable| (variable.name.clone(), variable.ty.to_string())).collect())
        }
        Err(failure) => Err(failure.to_string()),
    }
}

/// Returns whether all errors are about constants without a value and about loops that wait for a
/// plain read, and none is about a type.
fn is_of_no_type(refusal: &str) -> bool {
    let others = ["error[TMA0111]", "error[TMA0713]"].map(|code| refusal.matches(code).count());
    refusal.matches("error[TMA").count() == others.iter().sum::<usize>()
}

/// Has rustc judge a batch, and compares.
fn compare(package: &Package, batch: &[Body], count: &mut Count) -> anyhow::Result<()> {
    let nothing = HashMap::new();
    let texts: Vec<_> =
        batch.iter().map(|body| body.template.rust(body.inferred.as_ref().unwrap_or(&nothing))).collect();
    let mut others = vec![];
    for (body, (text, errors)) in batch.iter().zip(texts.iter().zip(package.judge(&texts)?)) {
        // A variable whose type is unknown to rustc, at its tag or elsewhere, counts as rejected by
        // rustc.
        let is_other_type = |(line, error): &&(usize, String)| {
            text.lines().nth(*line).is_some_and(body::is_tag) && !error.contains("annotations needed")
        };
        let (tags, refusals): (Vec<_>, Vec<_>) = errors.iter().partition(is_other_type);
        match (&body.inferred, refusals.first(), tags.first()) {
            (Ok(_), None, None) => {
                count.agreed += 1;
                count.variables += text.lines().filter(|line| body::is_tag(line)).count();
            }
            (Err(_), Some(_), _) => count.refused += 1,
            (Ok(_), Some(_), _) => count.taken_alone += 1,
            // rustc's lint rejects these shifts as well. It is off here, because it rejects more
            // than these.
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
    // If a type is in dispute, rustc does not report the types that it does not know. It is asked
    // again without the tags.
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
