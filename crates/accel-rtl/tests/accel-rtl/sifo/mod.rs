//! SIFO: layers, memories and programs of circuits, and the overlays.

mod circuits;
mod layers;
mod overlay;
mod published;
