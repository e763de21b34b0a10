/** Sessions of people who have signed in, and the door of a guarded service, where they do so. */
export * from './cookies.ts';
export * from './door.ts';
export { SeenOrigin, seenOrigin } from './seen-origin.ts';
export { SESSION_MS } from './session.ts';
export { Sessions } from './sessions.ts';
