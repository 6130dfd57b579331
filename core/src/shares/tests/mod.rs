//! Known figures and properties of the arithmetic of shares. What is tested beside the code is not
//! repeated here.

mod class_properties;
mod divisions;
mod drawn_divisions;
mod known_divisions;
mod percents;
