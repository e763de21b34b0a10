import { BEARER_ALONE, type CredentialPlace } from '../keys/secret/index.ts';
import { LOOPBACK, Networks } from '../keys/basics/index.ts';
import type { BUILTIN_RESOURCES, HostResource, Permission, PolicyRules } from '../keys/permissions/index.ts';

/** Settings for tuning a server, each undefined for its default. */
export interface ServerSettings {
  /** How long a connection is kept for a further request, in seconds. */
  readonly keepAlive?: number | undefined;
  /** The most connections of each process at a time. */
  readonly maxConnections?: number | undefined;
  /** The most of its connections from one address, or one /64 of IPv6. */
  readonly maxConnectionsPerAddress?: number | undefined;
  /** How many accepted secrets each process remembers. */
  readonly maxVerifiedKeys?: number | undefined;
  /** The address at which metrics are served. */
  readonly metricsHost?: string | undefined;
}

/** The numeric settings of a server, which start at 1, with their largest values. */
export const SERVER_NUMBERS = {
  keepAlive: 3600,
  maxConnections: 1_000_000,
  maxConnectionsPerAddress: 1_000_000,
  maxVerifiedKeys: 1_000_000,
} as const satisfies Partial<Record<keyof ServerSettings, number>>;

/** True for a whole number from 1 to a maximum. */
export function isCount(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most;
}

/** The contents of `svc-api.yaml`: checked, with defaults for omitted parts. Features add their own fields. */
export interface Config {
  /** The absolute path of the file; undefined if there is none. */
  readonly file: string | undefined;
  /** Resources in addition to the built-in ones. */
  readonly resources: readonly HostResource[];
  /** Actions in addition to the built-in ones. */
  readonly actions: readonly string[];
  /** The start of new secrets; undefined for `svc`, or that of the host. */
  readonly prefix: string | undefined;
  /** The visibility of the built-in resources. */
  readonly builtinResources: (typeof BUILTIN_RESOURCES)[number];
  /** Roles in addition to the built-in ones. */
  readonly roles: Readonly<Record<string, readonly Permission[]>>;
  /** Default: bearer alone. */
  readonly credentials: readonly CredentialPlace[];
  /** Networks of proxies whose forwarding headers are trusted. Default: loopback. */
  readonly trust: Networks;
  /** Origins, such as `https://app.example.org`, whose pages can send requests; `*` for all. */
  readonly cors: { readonly origins: readonly string[] };
  /** Absolute paths. */
  readonly tls: { readonly cert: string; readonly key: string; readonly clientCa?: string } | undefined;
  /** Settings that only take effect at the start of a server. */
  readonly server: ServerSettings;
  readonly limits: {
    /** Limits such as `100/m`, for keys without limits of their own. */
    readonly default: readonly string[];
    /** The limit of failed credentials from one address, such as `20/m`. */
    readonly failedCredentials: string;
  };
  /** Rules for all keys. */
  readonly policy: PolicyRules;
  /** How long entries of the audit log are kept, in milliseconds; null if they are kept forever. */
  readonly audit: { readonly keep: number | null };
  /** GraphQL introspection: on, off, or permitted to keys with PERMISSION:READ_ANY. */
  readonly introspection: 'on' | 'off' | 'permitted';
  /** The address at which clients reach the service; undefined for the one that a request was sent to. */
  readonly publicUrl: string | undefined;
  /** The name of the service on its pages; undefined for svc-api. */
  readonly title: string | undefined;
  /** Sections of plugins, by their names. */
  readonly added: Readonly<Record<string, unknown>>;
}

/** Defaults for the core's fields that the file omits. */
export const CORE_DEFAULTS = {
  file: undefined,
  resources: [],
  actions: [],
  prefix: undefined,
  builtinResources: 'shown',
  roles: {},
  credentials: BEARER_ALONE,
  trust: new Networks(LOOPBACK),
  cors: { origins: [] },
  tls: undefined,
  server: {},
  limits: { default: [], failedCredentials: '20/m' },
  policy: {},
  audit: { keep: null },
  introspection: 'on',
  publicUrl: undefined,
  title: undefined,
  added: {},
} as const satisfies Partial<Config>;
