/** The build, as a user gets it. The types are those of the sources, so that they can be checked without a build. */
export const { bearerAuth, createApp, listen, OPERATOR, openKeys } = (await import(
  new URL('../dist/index.js', import.meta.url).href
)) as typeof import('../src/index.ts');
