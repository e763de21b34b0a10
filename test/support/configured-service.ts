import { loadConfig } from '../../src/config/load-config.ts';
import { additionsIn } from '../../src/service/configured-server.ts';
import type { CreateAppOptions } from '../../src/service/create-app.ts';
import { configFile } from './config-file.ts';
import { startTestService, type TestService } from './server.ts';

/** Routes of all kinds. The last one never matches. */
export const ROUTES = `resources: [GRAFANA]
routes:
  - { host: g.example, path: /api/boards/**, methods: [GET, HEAD], allow: GRAFANA:READ_ANY }
  - { host: g.example, path: /api/**, allow: [GRAFANA:UPDATE_ANY, ME:READ_OWN], preflight: open }
  - { host: "*", path: /**, allow: { any: [GRAFANA:READ_ANY, DOCKER:READ_ANY] } }
  - { host: "*", path: /public/**, allow: open }
  - { host: "*", path: /, allow: key }
  - { host: g.example, path: /api/**, methods: [PUT], allow: key }
  - { host: g.example, path: /api/**, methods: [PUT], allow: key }
`;

/** Starts a server with this configuration file. */
export async function startConfiguredService(
  yaml: string,
  app: Omit<CreateAppOptions, 'keys' | 'extensions' | 'log' | 'replaces' | 'config'> = {},
): Promise<TestService & { file: string }> {
  const file = configFile(yaml);
  const config = await loadConfig({ file });
  const test = await startTestService({ ...(await additionsIn(config, {})), app: { config, ...app } });
  return { ...test, file };
}
