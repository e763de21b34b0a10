/** @type {import('svc-api/feature').FeatureHook} */
const hook = async () => ({
  name: 'svc-api-team',
  fields: {
    team: {
      kind: 'line',
      max: 50,
      label: 'Team',
      help: 'Team that uses the key.',
      filter: true,
      asked: true,
      removable: true,
    },
  },
});
export default hook;
