echo "files: $(ls | wc -l)" >../reports/today
