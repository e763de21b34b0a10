import type { Pages } from '../page-routes.ts';
import { Time } from '../parts/time.tsx';

const QUERY = `{
  health { storeKind storeAnswers answeredInMs hearsChanges searchIndex clockBehind }
  info { version startedAt runtime platform }
}`;

interface Answer {
  health: {
    storeKind: 'SQLITE' | 'POSTGRESQL';
    storeAnswers: boolean;
    answeredInMs: number | null;
    hearsChanges: boolean;
    searchIndex: boolean | null;
    clockBehind: number;
  };
  info: { version: string; startedAt: string; runtime: string; platform: string };
}

const STORES = { SQLITE: 'SQLite', POSTGRESQL: 'PostgreSQL' } as const;

/** Adds how the service and its key store are. */
export function addHealth(pages: Pages): void {
  pages.get('health', async (visit) => {
    const answer = await visit.ask<Answer>(QUERY);
    return visit.page('Health', <Health {...answer} now={visit.now} />);
  });
}

function Health({ health, info, now }: Answer & { now: number }) {
  const { storeKind, storeAnswers, answeredInMs, hearsChanges, searchIndex, clockBehind } = health;
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
          <Check
            what={`Key store, ${STORES[storeKind]}`}
            isWell={storeAnswers}
            state={answeredInMs === null ? 'does not answer' : `answers in ${answeredInMs.toFixed(1)} ms`}
            remedy="No request is accepted until it does. The server's log says why."
          />
          <Check
            what="Changes by other processes"
            isWell={hearsChanges}
            state={hearsChanges ? 'notified at once' : 'not notified'}
            remedy="Every request asks the store meanwhile, and takes longer. The server's log says why."
          />
          <Check
            what="Searches of keys"
            isWell={searchIndex !== false}
            state={searchIndex === null ? 'not known' : searchIndex ? 'by an index' : 'without an index'}
            remedy="With many keys, searches take longer: let the database have the extension pg_trgm."
          />
          <Check
            what="Clock"
            isWell={clockBehind === 0}
            state={clockBehind === 0 ? 'as the store knows it' : `${Math.round(clockBehind)} seconds behind the store`}
            remedy="Set the machine's clock: keys expire by the time that the store has seen."
          />
        </tbody>
      </table>
      <h2>Program</h2>
      <dl class="facts">
        <dt>Version</dt>
        <dd>{info.version}</dd>
        <dt>Started</dt>
        <dd>
          <Time at={info.startedAt} now={now} />
        </dd>
        <dt>Runs on</dt>
        <dd>
          {info.runtime}, {info.platform}
        </dd>
      </dl>
    </>
  );
}

function Check({ what, isWell, state, remedy }: { what: string; isWell: boolean; state: string; remedy: string }) {
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
