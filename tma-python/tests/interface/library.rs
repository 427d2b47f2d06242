//! A library of the operators, for `python/check.py`.

mod scaled;

use scaled::{Panics, Scale, ScaleInPlace};

tma_python::library!(Scale, ScaleInPlace, Panics);
