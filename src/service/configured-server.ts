import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.ts';
import type { SchemaExtension } from '../graphql/index.ts';
import type { CertificateFiles } from '../http/certificate.ts';
import type { ServerOptions, StartedServer } from '../http/index.ts';
import { type CatalogAdditions, type OwnNames, vocabularyOf } from '../keys/permissions/index.ts';
import { NO_LOG } from '../log.ts';
import type { OpenKeys } from './open-keys.ts';

/** The open key store, and its configuration. */
export interface OpenedService {
  /** Opened with the additions of the configuration: see `additionsIn`. */
  readonly keys: OpenKeys;
  readonly config: Config;
  readonly extensions: readonly SchemaExtension[];
}

/** A running service. */
export interface ServedService {
  readonly server: StartedServer;
  /** Further log fields besides the address. */
  readonly details?: object;
  /** Prepares for another configuration. The returned function switches to it, and cannot fail. */
  prepare(opened: OpenedService): Promise<() => void | Promise<void>>;
  /** Stops accepting requests, and resolves once the requests in flight have ended. */
  stop(): Promise<void>;
}

/** Starts to serve. */
export type StartService = (opened: OpenedService, server: ServerOptions) => Promise<ServedService>;

/** The additions to the built-in catalog: the resources and actions of a host, and the declarations of its configuration. */
export async function additionsIn(config: Config, ofHost: OwnNames): Promise<CatalogAdditions> {
  const { additionsOfFeatures } = await import('../features/index.ts');
  const { builtinResources, roles, limits, policy, added } = config;
  return {
    ...vocabularyOf(ofHost, config),
    builtinResources,
    roles,
    defaultLimits: limits.default,
    policy,
    added,
    ...additionsOfFeatures(config),
  };
}

/** A server that can change its configuration while it runs. */
export class ConfiguredServer {
  readonly service: ServedService;
  readonly #server: ServerOptions;
  /** The settings that take effect only at the start. */
  readonly #settings: Config['server'];
  /** The host's own names. */
  readonly #ofHost: OwnNames;
  #opened: OpenedService;

  private constructor(opened: OpenedService, ofHost: OwnNames, server: ServerOptions, service: ServedService) {
    this.#opened = opened;
    this.#ofHost = ofHost;
    this.#settings = opened.config.server;
    this.#server = server;
    this.service = service;
  }

  /** The key store with the present configuration. Earlier ones are no longer needed. */
  get keys(): OpenKeys {
    return this.#opened.keys;
  }

  /** The present configuration. */
  get config(): Config {
    return this.#opened.config;
  }

  /** @throws KeysError LISTEN_FAILED, TLS_INVALID; errors of `start` */
  static async start(
    { ofHost, ...opened }: OpenedService & { readonly ofHost: OwnNames },
    server: ServerOptions,
    start: StartService,
  ): Promise<ConfiguredServer> {
    const service = await start(opened, { ...server, tls: certificateOf(server, opened.config) });
    return new ConfiguredServer(opened, ofHost, server, service);
  }

  /**
   * Switches to another configuration: completely, or not at all if it throws. Requests in flight finish with the old
   * one.
   * @throws KeysError TLS_INVALID; Error as `createCatalog`; errors of the service
   */
  async take(config: Config): Promise<void> {
    const { extensions } = this.#opened;
    const { server } = this.service;
    const additions = await additionsIn(config, this.#ofHost);
    const opened = { keys: this.keys.withAdditions(additions), config, extensions };
    const goOn = await this.service.prepare(opened);
    const tls = certificateOf(this.#server, config);
    const isTls = tls ? await server.replaceCertificate(tls) : server.url.startsWith('https:');
    // Nothing after this can fail.
    await goOn();
    this.#opened = opened;
    const { log = NO_LOG } = this.#server;
    if (isTls !== (tls !== undefined))
      log.warn({ tls: tls !== undefined }, 'TLS begins or ends with the next start; everything else was loaded');
    if (!isDeepStrictEqual(config.server, this.#settings))
      log.warn(
        { server: config.server },
        'a changed "server" takes effect with the next start; everything else was loaded',
      );
  }
}

/**
 * The certificate of the server. A Unix socket uses no TLS, even if the configuration has a certificate for other
 * servers.
 */
function certificateOf(
  { tls, socket }: Pick<ServerOptions, 'tls' | 'socket'>,
  config: Config,
): CertificateFiles | undefined {
  if (socket !== undefined) return undefined;
  const clientCa = config.tls?.clientCa;
  return tls ? { ...tls, ...(clientCa !== undefined && { clientCa }) } : config.tls;
}
