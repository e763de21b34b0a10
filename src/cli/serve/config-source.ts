import type { ConfigFile } from '../../config/config-file.ts';
import type { ConfigFollower } from '../../config/config-follower.ts';
import type { Log } from '../../log.ts';
import { answerTaken, receivedConfigs } from './config-for-workers.ts';
import { reportNothing, reportRefused } from './reload-log.ts';

/** The file of configuration that a server starts with, and what follows it. */
export interface StartConfig {
  /** Undefined if there is none. */
  file: ConfigFile | undefined;
  /** Undefined for a user without a home folder, who named no file. */
  follower: ConfigFollower | undefined;
}

/** Where a server has its configuration from while it runs. */
export interface ConfigSource {
  /** What to start with; undefined if there is no file. */
  readonly first: ConfigFile | undefined;
  /** Hands on each later version, one after the other. @param take tells whether it was taken */
  follow(take: (file: ConfigFile) => Promise<boolean>): void;
  stop(): void;
}

/**
 * Reads the file of configuration of a server.
 * @param file the path that the user named
 * @throws KeysError CONFIG_…, USAGE
 */
export async function startConfig(file: string | undefined, env: NodeJS.ProcessEnv): Promise<StartConfig> {
  const [{ configLocation }, { ConfigFollower }] = await Promise.all([
    import('../../config/config-file.ts'),
    import('../../config/config-follower.ts'),
  ]);
  const location = configLocation(file, env);
  const follower = location && new ConfigFollower(location);
  return { file: follower?.read(), follower };
}

/** What reads the configuration again, on SIGHUP. It resolves once that was taken, or refused. */
export const reloadingOf =
  ({ follower }: StartConfig, log: Log) =>
  async (): Promise<void> => {
    if (follower) await follower.reload();
    else reportNothing(log);
  };

/** The configuration of a server of one process: its file, when it changes and on SIGHUP. */
export function ownConfig({ file, follower }: StartConfig, log: Log): ConfigSource {
  return {
    first: file,
    follow: (take) =>
      follower?.follow({
        take: async (next) => void (await take(next)),
        nothing: () => reportNothing(log),
        refused: (error) => reportRefused(error, log),
      }),
    stop: () => follower?.stop(),
  };
}

/** The configuration of a worker: what the primary hands on. Listens from when it is called. */
export async function configOfPrimary(): Promise<ConfigSource> {
  const versions = receivedConfigs();
  const { value: first } = await versions.next();
  const follow = async (take: (file: ConfigFile) => Promise<boolean>) => {
    for await (const file of versions) if (file) answerTaken(await take(file));
  };
  return { first, follow: (take) => void follow(take), stop: () => {} };
}
