//! PTX that a kernel wrote itself, with `ptx!`. The compiler marks it, and the simulator takes
//! instructions that it does not have for a mistake of a launch, not of the compiler.

/// The comment at the end of each line of a template.
pub const OWN_LINE: &str = " // ptx!";
