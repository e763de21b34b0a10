import { loadConfig } from '../../src/config/load-config.ts';
import { additionsIn } from '../../src/configured-server.ts';
import type { CreateAppOptions } from '../../src/create-app.ts';
import { configFile } from './config-file.ts';
import { startTestService, type TestService } from './server.ts';

/** A server by a file of configuration, which is text. */
export async function startConfiguredService(
  yaml: string,
  app: Omit<CreateAppOptions, 'keys' | 'extensions' | 'log' | 'replaces' | 'config'> = {},
): Promise<TestService & { file: string }> {
  const file = configFile(yaml);
  const config = await loadConfig({ file });
  const test = await startTestService({ ...additionsIn(config, []), app: { config, ...app } });
  return { ...test, file };
}
