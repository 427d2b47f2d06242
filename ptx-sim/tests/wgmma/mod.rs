//! `wgmma`: the results of multiplications, and the findings when one of their steps is left out.

mod forms;
mod products;
mod registers;
mod rules;
