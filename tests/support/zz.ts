import { Lab, numberPack, proposes, scoring } from "./lab.js";
import { driven } from "./drive.js";
const lab = new Lab();
lab.write(numberPack({ seed: 1, words: [proposes(scoring(1100)), proposes({ "main.sh": "exit 3\n" }), { 1: proposes(scoring(1100)), 2: proposes(scoring(600)) }, proposes(scoring(50))] }));
console.log(lab.folder);
for (let i=0;i<2;i++){ let t=performance.now();
const r = await driven(lab, [{ do: "create", name: "a"+i, request: { organization: { name: "tree", configuration: { drafts: 2, debugProbability: 1 } } } }, { do: "work", name: "a"+i, retractions: [{ trial: "t1", whenRequested: "c4" }] }, { do: "report", name: "a"+i }]);
console.log(performance.now()-t, r[0]?.phase, r[0]?.reason, r[0]?.verified, r[0]?.events.length);
if(i==0) for (const e of r[0]!.events) console.log(e.sequence, e.at, e.type, JSON.stringify(e.data).slice(0,150)); }
console.log(await lab.leftovers(), lab.scratch());
