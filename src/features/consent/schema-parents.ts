export type { ConsentState as ConsentRequest } from './consent.ts';
