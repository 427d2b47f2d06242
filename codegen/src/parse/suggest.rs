//! "Did you mean": the known name nearest to one that is not known.

/// A help line, if one of `known` is near to `name`.
pub(super) fn did_you_mean(name: &str, known: impl IntoIterator<Item = impl AsRef<str>>) -> Option<String> {
    let similarity = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    known
        .into_iter()
        .map(|candidate| (similarity(candidate.as_ref()), candidate.as_ref().to_owned()))
        .filter(|(edits, candidate)| *edits <= 1 + candidate.len().min(name.len()) / 4)
        .min()
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}
