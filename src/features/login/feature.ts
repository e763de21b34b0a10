import type { Feature } from '../../feature.ts';

export const login: Feature = { name: 'login', needs: ['consent'] };
