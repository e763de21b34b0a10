/** The parts of jose that are used; loaded once a token is exchanged. */
export { createRemoteJWKSet, customFetch, decodeJwt, jwtVerify } from 'jose';
