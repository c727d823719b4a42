//! Variants by name or as TOML, and options of the engine as TOML.
#![expect(unsafe_code, reason = "functions for C need fixed symbol names")]

use std::ffi::c_char;
use std::sync::Arc;

use reknit_stack::SocketId;
use reknit_tcp::Config;
use reknit_units::Instant;
use reknit_variants::{Composition, Custom};

use crate::call::{Failure, Host, run, text};

fn named(name: *const c_char) -> Result<Composition, Failure> {
    let variant = reknit_variants::find(text(name, "name")?).map_err(|error| Failure::invalid(error.to_string()))?;
    Ok((variant.compose)())
}

fn written(toml: *const c_char) -> Result<Composition, Failure> {
    let custom =
        Custom::parse("variant", text(toml, "variant")?).map_err(|error| Failure::invalid(error.to_string()))?;
    Ok(custom.composition)
}

/// `config` with the options of `text`.
fn changed(config: &Config, text: &str) -> Result<Config, Failure> {
    let invalid = |error: &dyn std::fmt::Display| {
        // The first line says what is wrong; the rest shows the place in the text.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        Failure::invalid(format!("options: {reason}"))
    };
    let changes: toml::Table = text.parse().map_err(|error| invalid(&error))?;
    let mut table = toml::Table::try_from(config).map_err(|error| invalid(&error))?;
    table.extend(changes);
    let config: Config = table.try_into().map_err(|error: toml::de::Error| invalid(&error.message()))?;
    config.check().map_err(|error| invalid(&error))?;
    Ok(config)
}

/// The sockets to come use the variant.
fn use_variant(stack: *mut Host, variant: impl FnOnce() -> Result<Composition, Failure>) -> i32 {
    run(stack, |host| {
        host.options.variant = Arc::new(variant()?);
        Ok(())
    })
}

/// An open socket uses the variant.
fn set_variant(stack: *mut Host, now: u64, socket: u64, variant: impl FnOnce() -> Result<Composition, Failure>) -> i32 {
    run(stack, |host| {
        let composition = variant()?;
        Ok(host.stack.set_variant(Instant::from_nanos(now), SocketId::from_bits(socket), &composition)?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_use_variant(stack: *mut Host, name: *const c_char) -> i32 {
    use_variant(stack, || named(name))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_use_variant_toml(stack: *mut Host, toml: *const c_char) -> i32 {
    use_variant(stack, || written(toml))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_use_options(stack: *mut Host, toml: *const c_char) -> i32 {
    run(stack, |host| {
        host.options.config = changed(&host.options.config, text(toml, "text")?)?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_set_variant(stack: *mut Host, now: u64, socket: u64, name: *const c_char) -> i32 {
    set_variant(stack, now, socket, || named(name))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_set_variant_toml(stack: *mut Host, now: u64, socket: u64, toml: *const c_char) -> i32 {
    set_variant(stack, now, socket, || written(toml))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_set_options(stack: *mut Host, now: u64, socket: u64, toml: *const c_char) -> i32 {
    run(stack, |host| {
        let text = text(toml, "text")?;
        let id = SocketId::from_bits(socket);
        let mut parsed = Ok(());
        host.stack.set_config(Instant::from_nanos(now), id, |config| match changed(config, text) {
            Ok(new) => *config = new,
            Err(failure) => parsed = Err(failure),
        })?;
        parsed
    })
}
