/**
 * Turns colours off in what this process prints from now on, whatever the environment asks for.
 * @returns what restores the environment, which a host or a child may use
 */
export function turnColorsOff(env: NodeJS.ProcessEnv): () => void {
  const before = { NO_COLOR: env['NO_COLOR'], FORCE_COLOR: env['FORCE_COLOR'] };
  env['NO_COLOR'] = '1';
  // It would win.
  delete env['FORCE_COLOR'];
  return () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
  };
}
