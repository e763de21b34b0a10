import type { Feature } from '../../feature.ts';

/** Keys that a person gets for a server by a code. */
export const login: Feature = { name: 'login', needs: ['consent'] };
