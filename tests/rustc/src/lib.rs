//! A package of its own for [what rustc says](../tests/mistakes.rs): rustc compiles it and all that
//! it depends on once more, so that is little.
