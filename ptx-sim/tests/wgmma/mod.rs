//! `wgmma`: what multiplications give, and what is found where a step of theirs is left out.

mod forms;
mod products;
mod registers;
mod rules;
