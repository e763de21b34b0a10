/** What is used of jose, alone: nobody loads it who exchanges no tokens. */
export { createLocalJWKSet, decodeJwt, errors, jwtVerify } from 'jose';
