mod sequences;
mod sets;
mod writes;
