//! Bad input, as users produce it: whatever is wrong is answered with the field and the value, as a
//! typed error of the library and with exit code 2 of the command. Nothing of it makes either panic.

#[path = "kit/starter.rs"]
mod starter;

mod bad_input {
    pub mod kit;
    mod limits;
    mod malformed;
    mod network;
    mod requests;
    mod values;
}
