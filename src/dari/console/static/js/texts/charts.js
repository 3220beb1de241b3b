export default {
  en: {
    "chart.table": "Show the numbers",
    "chart.others": "others",
    "chart.empty": "Nothing in this time.",
    "chart.time": "Time",
    "chart.number": "Number",
    "chart.most": "Most: {value} at {time}",
  },
  ko: {
    "chart.table": "숫자로 보기",
    "chart.others": "그 밖",
    "chart.empty": "이 시간에는 아무것도 없습니다.",
    "chart.time": "시각",
    "chart.number": "개수",
    "chart.most": "가장 많음: {time}에 {value}",
  },
};
