import { Fact, Time } from '../parts/notice.tsx';
import type { Pages } from '../visit.tsx';

/** What is asked of how the service and its key store are. */
export const HEALTH_FIELDS = 'storeKind storeAnswers answeredInMs hearsChanges searchIndex clockBehind';
const HEALTH = `{
  health { ${HEALTH_FIELDS} }
  info { version startedAt runtime platform }
}`;

/** See `Health` of the schema. */
export interface Health {
  readonly storeKind: 'SQLITE' | 'POSTGRESQL';
  readonly storeAnswers: boolean;
  readonly answeredInMs: number | null;
  readonly hearsChanges: boolean;
  readonly searchIndex: boolean | null;
  readonly clockBehind: number;
}

interface Answer {
  health: Health;
  info: { version: string; startedAt: string; runtime: string; platform: string };
}

const STORES = { SQLITE: 'SQLite', POSTGRESQL: 'PostgreSQL' } as const;

/** Adds how the service and its key store are. */
export function addHealth(pages: Pages): void {
  pages.get('health', async (visit) => {
    const answer = await visit.askAll<Answer>(HEALTH);
    return visit.page('Health', <HealthPage {...answer} now={visit.now} />);
  });
}

function HealthPage({ health, info, now }: Answer & { now: number }) {
  return (
    <>
      <div class="head">
        <h1>Health</h1>
      </div>
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">State</th>
            <th scope="col">What to do</th>
          </tr>
        </thead>
        <tbody>
          {checksOf(health).map((check) => (
            <CheckRow {...check} />
          ))}
        </tbody>
      </table>
      <h2>Program</h2>
      <dl class="facts">
        <Fact name="Version">{info.version}</Fact>
        <Fact name="Started">
          <Time at={info.startedAt} now={now} />
        </Fact>
        <Fact name="Runs on">
          {info.runtime}, {info.platform}
        </Fact>
      </dl>
    </>
  );
}

/** Something that is looked at. */
interface Check {
  readonly what: string;
  readonly isWell: boolean;
  readonly state: string;
  readonly remedy: string;
}

function checksOf({ storeKind, storeAnswers, answeredInMs, hearsChanges, searchIndex, clockBehind }: Health): Check[] {
  return [
    {
      what: `Key store, ${STORES[storeKind]}`,
      isWell: storeAnswers,
      state: answeredInMs === null ? 'does not answer' : `answers in ${answeredInMs.toFixed(1)} ms`,
      remedy: "No request is accepted until it does. The server's log says why.",
    },
    {
      what: 'Changes by other processes',
      isWell: hearsChanges,
      state: hearsChanges ? 'notified at once' : 'not notified',
      remedy: "Every request asks the store meanwhile, and takes longer. The server's log says why.",
    },
    {
      what: 'Searches of keys',
      isWell: searchIndex !== false,
      state: searchIndex === null ? 'not known' : searchIndex ? 'by an index' : 'without an index',
      remedy: 'With many keys, searches take longer: let the database have the extension pg_trgm.',
    },
    {
      what: 'Clock',
      isWell: clockBehind === 0,
      state: clockBehind === 0 ? 'in sync' : `${Math.round(clockBehind)} seconds behind the audit log`,
      remedy: "Set the machine's clock: keys expire by it.",
    },
  ];
}

/** What is not well. */
export function troublesOf(health: Health): readonly Check[] {
  return checksOf(health).filter(({ isWell }) => !isWell);
}

function CheckRow({ what, isWell, state, remedy }: Check) {
  return (
    <tr>
      <th scope="row">{what}</th>
      <td>
        <span class={`status ${isWell ? 'active' : 'bad'}`}>{state}</span>
      </td>
      <td class="faint">{isWell ? 'nothing' : remedy}</td>
    </tr>
  );
}

const LIMITS = `{
  limits {
    defaultKeyLimits failedCredentials
    request { cost nodes characters timeMs errors pageSize tokens nesting depth fields aliases directives fragments }
  }
}`;

interface ServiceLimits {
  defaultKeyLimits: string[];
  failedCredentials: string | null;
  request: Readonly<Record<keyof typeof REQUEST_LIMITS, number | null>>;
}

/** The limits of one GraphQL request, in words. */
const REQUEST_LIMITS = {
  cost: 'Cost, as the schema counts it',
  timeMs: 'Time, in milliseconds',
  nodes: 'Fields and items that are resolved',
  characters: 'Characters of the answer',
  pageSize: 'Items of a page',
  depth: 'Levels of fields',
  fields: 'Fields',
  aliases: 'Aliases',
  directives: 'Directives',
  fragments: 'Fragments',
  tokens: 'Tokens of the document',
  nesting: 'Levels of brackets',
  errors: 'Errors of the answer',
} as const;

/** Adds what all keys and requests are held to. */
export function addLimits(pages: Pages): void {
  pages.get('limits', async (visit) => {
    return visit.page('Limits', <Limits limits={await visit.ask(LIMITS)} />);
  });
}

function Limits({ limits: { defaultKeyLimits, failedCredentials, request } }: { limits: ServiceLimits }) {
  return (
    <>
      <div class="head">
        <h1>Limits</h1>
      </div>
      <dl class="facts">
        <Fact name="A key without limits of its own">
          {defaultKeyLimits.length > 0 ? `${defaultKeyLimits.join(', ')} requests` : 'any number of requests'}
          <p class="help">
            Set for all by <code>limits.default</code> in svc-api.yaml, for one on its page.
          </p>
        </Fact>
        <Fact name="Invalid keys from one address">{failedCredentials ?? 'any number'}</Fact>
      </dl>
      <h2>One GraphQL request</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col" class="number">
              At most
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(REQUEST_LIMITS).map(([name, words]) => (
            <tr>
              <th scope="row">{words}</th>
              <td class="number">{request[name as keyof typeof REQUEST_LIMITS]?.toLocaleString('en') ?? 'any'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
