/** The build, as users get it. The types are those of the sources, so that checking them needs no build. */
export const { bearerAuth, createApp, listen, loadConfig, OPERATOR, openKeys } = (await import(
  new URL('../dist/index.js', import.meta.url).href
)) as typeof import('../src/index.ts');
