//! The JSON of python-paillier (phe).
